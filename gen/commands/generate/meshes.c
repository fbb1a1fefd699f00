#include "gen/commands/generate/meshes.h"

#include <string.h>

#include "gen/base/quantity.h"
#include "gen/spec/schema.h"
#include "gen/spec/source.h"

struct source_job {
  const struct compilation *compilation;
  struct json_t *schema; /* of all readings */
  const char *text;      /* the job's */
};

/* The job as the command line and these keys set it. */
static struct job *read_with(void *context, struct arena *arena, const struct job_override *keys, int n_keys,
                             struct diagnostics *diags) {
  const struct source_job *source = context;
  const struct options *options = source->compilation->options;
  size_t before = (size_t)options->n_overrides;
  struct job_override *all = arena_alloc(arena, (before + (size_t)n_keys + 1) * sizeof *all);
  for (size_t i = 0; i < before; i++) all[i] = options->overrides[i];
  for (int i = 0; i < n_keys; i++) all[before + (size_t)i] = keys[i];
  struct job *job = job_parse_by(arena, source->schema, options->argument, source->text, strlen(source->text), all,
                                 (int)before + n_keys, diags);
  if (job != NULL) job->data.sequence_length = source->compilation->job->data.sequence_length;
  return job;
}

/* What would help: where nothing fits, what the least takes; else the first reason. */
static void refuse(struct compilation *compilation, const struct search_result *result) {
  struct diagnostics *diags = &compilation->diags;
  const struct location where = job_where(result->job, "parallelism");
  struct arena *arena = compilation->arena;
  if (result->n_candidates == 0) {
    diag_error(diags, where, "no mesh of %lld ranks fits in devices.memory, %s", (long long)result->hardware.ranks,
               bytes_text(arena, result->hardware.memory));
    if (result->least > 0)
      diag_help(diags, "the one that takes the least takes some %s", bytes_text(arena, result->least));
    else
      diag_help(diags, "no number of ranks divides the %lld samples of accumulation.train_batch_size",
                (long long)result->job->accumulation.train_batch_size);
    return;
  }
  diag_error(diags, where, "none of the meshes that fit can be generated so far");
  diag_note(diags, where, "the fastest, %s: %s", mesh_text(arena, &result->candidates[0].mesh),
            result->candidates[0].refused);
  diag_help(diags, "accel-gen plan lists the best of them; raise devices.memory or change what it names");
}

/* What does not train runs on one rank, whose batches are the job's or of one sample. */
static int one_rank(const struct compilation *compilation, struct job_override *keys) {
  const struct job *job = compilation->job;
  int64_t batch = job->data.batch_size > 0 ? job->data.batch_size : 1;
  int64_t steps = job->accumulation.train_batch_size / batch;
  struct arena *arena = compilation->arena;
  int count = 0;
  keys[count++] = (struct job_override){"parallelism", "{}"};
  keys[count++] = (struct job_override){"devices.nodes", "1"};
  keys[count++] = (struct job_override){"devices.per_node", "1"};
  keys[count++] = (struct job_override){"data.batch_size", arena_printf(arena, "%lld", (long long)batch)};
  keys[count++] = (struct job_override){"accumulation.num_steps", arena_printf(arena, "%lld", (long long)steps)};
  if (job->memory.activation_checkpointing == CHECKPOINTING_AUTO)
    keys[count++] = (struct job_override){"memory.activation_checkpointing", "none"};
  return count;
}

int find_mesh(struct compilation *compilation, const struct planner *planner, struct job_override *keys) {
  const struct options *options = compilation->options;
  struct arena *arena = compilation->arena;
  if (compilation->kind != PROGRAM_TRAIN) return one_rank(compilation, keys);
  struct diagnostics known = diagnostics_in(arena); /* it was read before */
  size_t length;
  struct source_job source = {.compilation = compilation, .schema = schema_of_job()};
  source.text = compilation->text != NULL
                    ? compilation->text
                    : source_read(arena, options->argument, (struct location){0}, &length, &known);
  struct job_reader reader = {read_with, &source};
  const struct search_result *result =
      source.text != NULL ? search_mesh(arena, planner, compilation->job, &reader, &compilation->diags) : NULL;
  json_decref(source.schema);
  compilation->searched = result;
  if (result == NULL) return 0;
  if (result->chosen == NULL) {
    refuse(compilation, result);
    return 0;
  }
  mesh_keys(arena, &result->chosen->mesh, compilation->job, keys);
  return KEYS;
}
