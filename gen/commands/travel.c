#include "gen/commands/travel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/path.h"
#include "gen/base/version.h"
#include "gen/commands/length.h"
#include "gen/emit/emit.h"
#include "gen/model/hooks.h"
#include "gen/model/model.h"
#include "gen/model/published.h"
#include "gen/plan/plan.h"
#include "gen/plan/report/report.h"
#include "gen/plan/solve.h"
#include "gen/plan/target.h"
#include "gen/tuning/tuning.h"

/* ---- From the job to the model's inputs ---- */

/* Tokens of a window: the job's own word, else what the model's config calls its block size. */
static bool resolve_sequence_length(struct travel *travel) {
  struct job *job = travel->job;
  if (job_has_rows(job) || job->data.sequence_length > 0) return true;
  for (int i = 0; i < job->model.n_config; i++) {
    const struct config_value *value = &job->model.config[i];
    if (strcmp(value->name, "block_size") != 0 || value->kind != CONFIG_INT || value->integer < 1) continue;
    job->data.sequence_length = (int)value->integer;
    return true;
  }
  diag_error(&travel->diags, job_where(job, "data"), "the length of a sequence is not known");
  diag_help(&travel->diags, "set data.sequence_length, or a block_size in model.config");
  return false;
}

static int describe_inputs(const struct travel *travel, const struct job *job, struct model_input inputs[4]) {
  static const char *const names[] = {"tokens", "targets", "starts", "positions"};
  bool writes = travel->kind == PROGRAM_GENERATE;
  int64_t batch = writes ? 1 : job->data.batch_size;
  if (job_has_rows(job)) {
    inputs[0] = (struct model_input){"features", shape_of(2, batch, (int64_t)job->data.features), DTYPE_FLOAT32};
    inputs[1] = (struct model_input){"labels", shape_of(1, batch),
                                     job->data.label == LABEL_CLASS ? DTYPE_INT32 : DTYPE_FLOAT32};
    return 2;
  }
  inputs[0] = (struct model_input){"tokens", shape_of(2, batch, (int64_t)job->data.sequence_length), DTYPE_INT32};
  for (int i = 1; i < 4; i++) {
    inputs[i] = inputs[0];
    inputs[i].name = names[i];
  }
  if (writes) return 1;
  return job->data.packing != PACKING_NONE ? 4 : 2;
}

/* A generating program writes what follows a text; a row of a table has nothing behind it. */
static bool check_generate(struct travel *travel) {
  if (travel->kind != PROGRAM_GENERATE || !job_has_rows(travel->job)) return true;
  diag_error(&travel->diags, job_where(travel->job, "data.train.format"),
             "a generating program needs a job over tokens; this one has rows");
  diag_help(&travel->diags, "--program train and --program evaluate are what a table can have");
  return false;
}

static bool has_source(struct travel *travel) {
  const char *source = travel->job->model.source;
  if (access(source, R_OK) == 0) return true;
  diag_error(&travel->diags, job_where(travel->job, "model.source"), "cannot read the model '%s': %s", source,
             strerror(errno));
  diag_help(&travel->diags, "name a file in C, by its path from the job's folder; examples/models has some");
  return false;
}

/* The model's source, with the function from which a program of the kind is made; and the job's hooks. */
static bool read_model(struct travel *travel) {
  if (travel->model != NULL) return true;
  if (travel->kind == PROGRAM_TRAIN && !hooks_check(travel->arena, travel->job, &travel->diags)) return false;
  if (!has_source(travel)) return false;
  travel->model = model_parse(travel->arena, travel->job->model.source, &travel->diags);
  if (travel->model == NULL) return false;
  if (travel->kind != PROGRAM_GENERATE || model_has(travel->model, "predict")) return true;
  diag_error(&travel->diags, (struct location){.file = travel->job->model.source},
             "the model has no function 'predict', from which a generating program is made");
  diag_help(&travel->diags, "write 'tensor predict(scope s, struct config c, tensor tokens)' that returns logits");
  return false;
}

static struct model_request request_of(const struct travel *travel, const struct job *job,
                                       struct model_input inputs[4]) {
  bool writes = travel->kind == PROGRAM_GENERATE;
  return (struct model_request){.entry = writes ? "predict" : "model",
                                .loss = !writes,
                                .prediction = !writes && job_wants_predictions(job),
                                .config = job->model.config,
                                .n_config = job->model.n_config,
                                .config_where = job_where(job, "model.config"),
                                .inputs = inputs,
                                .n_inputs = describe_inputs(travel, job, inputs)};
}

/* The graph of a job that may differ from the travel's own in its sizes. */
static struct graph *read_graph(void *context, struct arena *arena, const struct job *job, struct diagnostics *diags) {
  const struct travel *travel = context;
  struct model_input inputs[4];
  const struct model_request request = request_of(travel, job, inputs);
  return model_graph(arena, travel->model, &request, diags);
}

/* The config.json beside the weights, or in them where they are a folder. They are named from where the trainer will
 * run: here, or in the job's folder. */
static const char *beside_weights(const struct travel *travel, const char *weights) {
  struct arena *arena = travel->arena;
  const char *in_job = arena_printf(arena, "%s/%s", folder_of(arena, travel->options->argument), weights);
  const char *const folders[] = {weights, folder_of(arena, weights), in_job, folder_of(arena, in_job)};
  const char *path = NULL;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    if (i == 2 && weights[0] == '/') break;
    path = arena_printf(arena, "%s/config.json", folders[i]);
    if (access(path, F_OK) == 0) break;
  }
  return path;
}

/* What the config.json beside the weights says against the job's config. */
static bool check_published(struct travel *travel) {
  const struct job *job = travel->job;
  struct model_input inputs[4];
  const struct model_request request = request_of(travel, job, inputs);
  const char *unknown, *weights = job->model.weights;
  if (weights == NULL) return true;
  const char *path = beside_weights(travel, weights);
  if (!model_check_published(travel->arena, travel->model, &request, path, &travel->diags, &unknown)) return false;
  if (unknown[0] == '\0') return true;
  diag_warning(&travel->diags, job_where(job, "model.weights"), "%s says what the model's config does not have: %s",
               path, unknown);
  diag_help(&travel->diags, "where the model computes otherwise, it is another model with the same shapes");
  return true;
}

/* ---- What was measured ---- */

/* The table that the job names. False with an error where it cannot serve. */
static bool read_tuning(struct travel *travel) {
  const char *name = travel->job->devices.tuning;
  if (travel->tuning != NULL || name == NULL) return true;
  const struct location where = job_where(travel->job, "devices.tuning");
  const struct tuned_machine machine = tuning_machine(travel->arena);
  /* Whether a GPU has what was measured is for the trainer to see. */
  const struct tuned_machine *here = travel->job->devices.kind == DEVICE_CUDA ? NULL : &machine;
  const char *file = strcmp(name, "machine") == 0 ? tuning_path(travel->arena, &machine) : name;
  if (file == NULL) {
    diag_error(&travel->diags, where, "there is no cache folder in which this machine's table could be");
    diag_help(&travel->diags, "set XDG_CACHE_HOME or HOME, or name a file");
    return false;
  }
  travel->tuning = tuning_read(travel->arena, file, here, where, &travel->diags);
  return travel->tuning != NULL;
}

/* ---- The stages in order ---- */

static bool read_job(struct travel *travel, const struct job_override *overrides, int n_overrides) {
  const char *file = travel->options->argument, *text = travel->text;
  travel->job = text == NULL ? job_read(travel->arena, file, overrides, n_overrides, &travel->diags)
                : travel->schema == NULL
                    ? job_parse(travel->arena, file, text, strlen(text), overrides, n_overrides, &travel->diags)
                    : job_parse_by(travel->arena, travel->schema, file, text, strlen(text), overrides, n_overrides,
                                   &travel->diags);
  return travel->job != NULL && check_generate(travel) && resolve_sequence_length(travel) && read_tuning(travel);
}

/* The job with the numbers that it left open: read again, as if the command line had set them. */
static bool close_job(struct travel *travel, const struct planner *planner) {
  enum { MOST = 5 };
  const struct options *options = travel->options;
  if (!is_open(travel->job)) return true;
  size_t room = (size_t)options->n_overrides + MOST;
  struct job_override *overrides = arena_alloc(travel->arena, room * sizeof *overrides);
  for (int i = 0; i < options->n_overrides; i++) overrides[i] = options->overrides[i];
  int found;
  if (!solve(travel->arena, planner, travel->job, &travel->diags, overrides + options->n_overrides, &found))
    return false;
  return read_job(travel, overrides, options->n_overrides + found);
}

int travel_to_job(struct travel *travel) {
  if (!read_job(travel, travel->options->overrides, travel->options->n_overrides)) return STATUS_BAD_JOB;
  struct planner planner = {read_graph, travel, travel->kind, travel->tuning};
  return read_model(travel) && check_published(travel) && close_job(travel, &planner) ? STATUS_OK : STATUS_BAD_JOB;
}

int travel_to_program(struct travel *travel) {
  if (travel_to_job(travel) != STATUS_OK) return STATUS_BAD_JOB;
  struct planner planner = {read_graph, travel, travel->kind, travel->tuning};
  if (travel->kind == PROGRAM_TRAIN && !find_steps(travel->job, &travel->diags)) return STATUS_BAD_JOB;
  if (travel->adjust != NULL) travel->adjust(travel->context, travel->job);
  travel->program =
      plan_least(travel->arena, &planner, travel->job, &travel->diags, travel->options->dump, &travel->dumped);
  if (travel->program == NULL) return STATUS_BAD_JOB;
  if (!check_memory(&planner, travel->program, &travel->diags)) return STATUS_BAD_JOB;
  find_savings(&planner, travel->program);
  return STATUS_OK;
}

int travel_to_text(struct travel *travel, struct origins *origins, const char **text) {
  int status = travel_to_program(travel);
  if (status != STATUS_OK) return status;
  if (travel->templates == NULL) travel->templates = templates_open(travel->arena, travel->options->templates);
  const struct emit_options emit = {.templates = travel->templates,
                                    .version = ACCEL_VERSION,
                                    .model = model_digest(travel->model),
                                    .plan_text = report_text(travel->program),
                                    .summary = report_summary(travel->program)};
  const struct target *target = travel->program->target;
  *text = emit_program(travel->program, 0, &emit, origins, &travel->diags);
  if (*text != NULL && target->n_texts > 1)
    travel->beside = emit_program(travel->program, 1, &emit, travel->beside_origins, &travel->diags);
  return *text != NULL && (target->n_texts == 1 || travel->beside != NULL) ? STATUS_OK : STATUS_CANNOT;
}

/* `path` with another ending; NULL where it has not the one. */
static const char *with_ending(struct arena *arena, const char *path, const char *from, const char *to) {
  const char *stem = without_ending(arena, path, from);
  return stem != NULL ? arena_printf(arena, "%s%s", stem, to) : NULL;
}

const char *travel_beside_path(const struct travel *travel, const char *program) {
  const char *const *suffixes = travel->program->target->suffixes;
  return with_ending(travel->arena, program, suffixes[0], suffixes[1]);
}

const char *travel_program_path(const struct travel *travel, const char *path) {
  const struct target *target = travel->program->target;
  return target->n_texts > 1 ? with_ending(travel->arena, path, target->suffixes[1], target->suffixes[0]) : NULL;
}
