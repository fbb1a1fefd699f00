/* accel-gen estimate: the memory that a published model takes. */
#include "gen/commands/start/estimate.h"

#include <stdio.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/start/dialog.h"
#include "gen/commands/start/family.h"
#include "gen/spec/schema.h"
#include "runtime/base/terminal.h"

enum { LENGTH = 512, RANKS = 8, MORE = 4 };

/* fp16 takes what bf16 does, and the loss scale. */
static const char *const precisions[] = {"no", "bf16"};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

struct estimator {
  const struct options *options;
  const char *text;   /* of the job; NULL: options->argument is its file */
  struct tree *model; /* of all plans */
  json_t *schema;
  struct estimate *estimate;
};

/* ---- The job ---- */

/* A job that trains the model of a config.json. */
static const char *job_text(const struct options *options, const struct family *family) {
  struct arena *arena = options->arena;
  struct dialog dialog = dialog_open(arena, "{}", false);
  const int64_t length = family->positions > 0 && family->positions < LENGTH ? family->positions : LENGTH;
  const char *size = arena_printf(arena, "%lld", (long long)(family->features > 0 ? family->features : length));
  const char *key = family->inputs != NULL ? "data.inputs"
                    : family->features > 0 ? "data.features"
                                           : "data.sequence_length";
  const char *format = family->inputs != NULL ? "npz" : family->features > 0 ? "csv" : "bytes";
  dialog_set(&dialog, "model.source", arena_printf(arena, "'%s'", family->source));
  dialog_set(&dialog, "model.config", family_config(arena, family));
  dialog_set(&dialog, "data.train", arena_printf(arena, "{path: none, format: %s}", format));
  dialog_set(&dialog, key, family->inputs != NULL ? family->inputs : size);
  dialog_set(&dialog, "data.batch_size", "1");
  dialog_set(&dialog, "training", "{steps: 1000000, eval_interval: 0}");
  struct text out = text_in(arena);
  spec_write(&out, dialog.document);
  dialog_close(&dialog);
  return text_string(&out);
}

/* ---- Plans ---- */

/* The plan with keys after those of the command line. */
static int plan_with(const struct estimator *e, struct arena *arena, const struct job_override *more, int n_more,
                     struct options *options, struct compilation *compilation) {
  const size_t given = (size_t)e->options->n_overrides;
  *options = *e->options;
  options->arena = arena;
  options->overrides = arena_alloc(arena, (given + MORE) * sizeof *options->overrides);
  options->n_overrides = 0;
  for (size_t i = 0; i < given; i++)
    if (e->text == NULL || strncmp(e->options->overrides[i].key, "model.config.", 13) != 0) /* they are in the text */
      options->overrides[options->n_overrides++] = e->options->overrides[i];
  for (int i = 0; i < n_more; i++) options->overrides[options->n_overrides++] = more[i];
  *compilation = (struct compilation){.options = options,
                                      .arena = arena,
                                      .diags = diagnostics_in(arena),
                                      .kind = PROGRAM_TRAIN,
                                      .text = e->text,
                                      .model = e->model,
                                      .schema = e->text != NULL ? e->schema : NULL};
  return compile_to_program(compilation);
}

static const char *mesh_text(struct arena *arena, int64_t ranks, int stage) {
  if (stage > 0) return arena_printf(arena, "{dp_shard: %lld, zero_stage: %d}", (long long)ranks, stage);
  return arena_printf(arena, "{dp_replicate: %lld}", (long long)ranks);
}

/* Adds a setup of training, each planned in an arena of its own. */
static void try_way(const struct estimator *e, const char *optimizer, const char *precision, int64_t ranks, int stage) {
  struct arena *arena = arena_new();
  struct training setup = {.optimizer = optimizer, .precision = precision, .ranks = ranks, .zero_stage = stage};
  struct options options;
  struct compilation compilation;
  const struct job_override keys[MORE] = {{"optimizer", arena_printf(arena, "{name: %s}", optimizer)},
                                          {"precision", arena_printf(arena, "{mixed_precision: %s}", precision)},
                                          {"devices.per_node", arena_printf(arena, "%lld", (long long)ranks)},
                                          {"parallelism", mesh_text(arena, ranks, stage)}};
  if (plan_with(e, arena, keys, MORE, &options, &compilation) == STATUS_OK)
    setup.bytes = compilation.program->figures.bytes;
  else
    setup.refused = diag_first_error(e->options->arena, &compilation.diags);
  ARENA_PUSH(e->options->arena, e->estimate->setups, setup);
  arena_free(arena);
}

static void try_all(const struct estimator *e) {
  const json_t *name = schema_find(e->schema, "optimizer.name"), *words = json_object_get(name, "enum"), *word;
  size_t i;
  json_array_foreach(words, i, word) for (int p = 0; p < PRECISIONS; p++)
      try_way(e, arena_string(e->options->arena, json_string_value(word)), precisions[p], 1, 0);
  for (int stage = 0; stage < 4; stage++)
    for (int p = 0; p < PRECISIONS; p++) try_way(e, e->estimate->optimizer, precisions[p], e->estimate->ranks, stage);
  try_way(e, "adam", "fp16", 1, 0);
}

/* ---- The model's sizes ---- */

/* Letters of the name of the layer that a parameter is of, which is not split: a module with a number, or one that is
 * called embeddings; else the parameter's own module. */
static size_t layer_of(const char *path) {
  size_t end = 0, module = 0;
  while (path[end] != '\0') {
    const size_t start = end, length = strcspn(path + start, ".");
    const bool number = strspn(path + start, "0123456789") == length;
    end = start + length;
    if (path[end] == '\0') break;
    module = end;
    if (number || (length == 10 && strncmp(path + start, "embeddings", length) == 0)) return end;
    end++;
  }
  return module;
}

static void measure(struct estimate *estimate, const struct program *program, struct arena *arena) {
  const struct weight_tree *weights = program->weights;
  estimate->tensors = weights->count;
  for (int i = 0; i < weights->count; i++) {
    const char *path = weights->items[i].path;
    const size_t length = layer_of(path);
    int64_t bytes = 0;
    for (int k = 0; k < weights->count; k++) {
      const char *other = weights->items[k].path;
      if (k < i && strncmp(other, path, length) == 0 && layer_of(other) == length) break; /* counted before */
      if (strncmp(other, path, length) == 0 && layer_of(other) == length)
        bytes += 4 * shape_count(weights->items[k].parameter->shape);
    }
    estimate->elements += shape_count(weights->items[i].parameter->shape);
    if (bytes <= estimate->largest) continue;
    estimate->largest = bytes;
    estimate->layer = arena_copy(arena, path, length);
  }
  estimate->bytes = 4 * estimate->elements;
}

/* ---- The command ---- */

static int take(struct estimator *e, struct diagnostics *diags) {
  struct arena *arena = e->options->arena;
  struct options options;
  struct compilation compilation;
  const int status = plan_with(e, arena, NULL, 0, &options, &compilation);
  *diags = compilation.diags;
  if (status != STATUS_OK) return status;
  const struct job *job = compilation.job;
  struct estimate *estimate = e->estimate;
  e->model = compilation.model;
  estimate->source = name_in_folder(job->model.source);
  estimate->batch = job->data.batch_size;
  estimate->tokens = job_has_rows(job) ? 0 : job->data.sequence_length;
  estimate->optimizer = job_word(job, "optimizer.name");
  estimate->ranks = job->devices.ranks > 1 ? job->devices.ranks : RANKS;
  measure(estimate, compilation.program, arena);
  try_all(e);
  if (e->options->json)
    fputs(estimate_json(arena, estimate), stdout);
  else
    rt_print_text(stdout, estimate_text(arena, estimate));
  return STATUS_OK;
}

static bool is_published(const char *path) {
  return is_folder(path) || has_ending(path, ".json");
}

int command_estimate(const struct options *options) {
  struct diagnostics diags = diagnostics_in(options->arena);
  struct estimate estimate = {.name = options->argument};
  struct estimator e = {.options = options, .estimate = &estimate, .schema = schema_of_job()};
  struct family family;
  int status = STATUS_OK;
  if (is_published(options->argument)) {
    if (family_read(options, options->argument, &family, &diags)) {
      e.text = job_text(options, &family);
      e.model = family.model;
    } else {
      status = STATUS_BAD_JOB;
    }
  }
  if (status == STATUS_OK) status = take(&e, &diags);
  json_decref(e.schema);
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  return status;
}
