#include "gen/commands/generate/compilation.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/path.h"
#include "gen/base/version.h"
#include "gen/commands/generate/length.h"
#include "gen/commands/generate/meshes.h"
#include "gen/commands/generate/quantized_config.h"
#include "gen/emit/emit.h"
#include "gen/model/hooks.h"
#include "gen/model/model.h"
#include "gen/model/published.h"
#include "gen/plan/plan.h"
#include "gen/plan/report/report.h"
#include "gen/plan/solve.h"
#include "gen/program/target.h"
#include "gen/tuning/tuning.h"

/* ---- From the job to the model's inputs ---- */

/* Of rows: the batch, and the dimensions of a sample. */
static struct model_input row_input(const struct data_input *input, int64_t batch) {
  struct shape shape = shape_of(1, batch);
  for (int i = 0; i < input->rank; i++) shape.dim[shape.rank++] = input->dims[i];
  return (struct model_input){input->name, shape, input->is_integer ? DTYPE_INT32 : DTYPE_FLOAT32};
}

/* The input of a job over rows that a model writes, `labels`; NULL: there is none. */
static const struct data_input *written_input(const struct job *job) {
  for (int i = 0; i < job->data.n_inputs; i++) {
    const struct data_input *input = &job->data.inputs[i];
    if (strcmp(input->name, "labels") == 0 && input->is_integer && input->rank == 1) return input;
  }
  return NULL;
}

/* Tokens of a window: the job's own word, else what the model's config calls its block size. */
static bool resolve_sequence_length(struct compilation *compilation) {
  struct job *job = compilation->job;
  if (job_has_rows(job) && compilation->kind == PROGRAM_GENERATE)
    job->data.sequence_length = (int)written_input(job)->dims[0];
  if (job_has_rows(job) || job->data.sequence_length > 0) return true;
  for (int i = 0; i < job->model.n_config; i++) {
    const struct config_value *value = &job->model.config[i];
    if (strcmp(value->name, "block_size") != 0 || value->kind != CONFIG_INT || value->integer < 1) continue;
    job->data.sequence_length = (int)value->integer;
    return true;
  }
  diag_error(&compilation->diags, job_where(job, "data"), "the length of a sequence is not known");
  diag_help(&compilation->diags, "set data.sequence_length, or a block_size in model.config");
  return false;
}

/* The tensors that the model may take; their number is in *count. What writes text takes the tokens so far, of rows
 * with the inputs of one of them. */
static struct model_input *describe_inputs(const struct compilation *compilation, struct arena *arena,
                                           const struct job *job, int *count) {
  static const char *const names[] = {"tokens", "targets", "starts", "positions"};
  bool writes = compilation->kind == PROGRAM_GENERATE, rows = job_has_rows(job);
  int64_t batch = writes ? 1 : job->data.batch_size, length = job->data.sequence_length;
  const int sequences = rows ? writes : writes ? 1 : job->data.packing != PACKING_NONE ? 4 : 2;
  *count = sequences + (rows ? job->data.n_inputs : 0);
  struct model_input *inputs = arena_alloc(arena, ((size_t)*count + 1) * sizeof *inputs);
  for (int i = 0; i < *count; i++)
    inputs[i] = i >= sequences ? row_input(&job->data.inputs[i - sequences], batch)
                               : (struct model_input){names[i], shape_of(2, batch, length), DTYPE_INT32};
  return inputs;
}

/* A generating program writes what follows a text; a row of a table has nothing after it, but where a model writes the
 * labels of its rows. */
static bool check_generate(struct compilation *compilation) {
  if (compilation->kind != PROGRAM_GENERATE || !job_has_rows(compilation->job)) return true;
  if (written_input(compilation->job) != NULL) return true;
  diag_error(
      &compilation->diags, job_where(compilation->job, "data.train.format"),
      "a text generator needs a job over tokens, or rows with 'labels' that are tokens; this one has other rows");
  diag_help(&compilation->diags, "use --program train or --program evaluate with a table");
  return false;
}

static bool has_source(struct compilation *compilation) {
  const char *source = compilation->job->model.source;
  if (access(source, R_OK) == 0) return true;
  diag_error(&compilation->diags, job_where(compilation->job, "model.source"), "cannot read the model '%s': %s", source,
             strerror(errno));
  diag_help(&compilation->diags, "name a file in C, by its path from the job's folder; examples/models has some");
  return false;
}

/* How many of the data's inputs a model's function takes. */
static int inputs_taken(const struct compilation *compilation, const char *function) {
  const struct job *job = compilation->job;
  int count = 0;
  for (int i = 0; i < job->data.n_inputs; i++)
    count += model_takes(compilation->model, function, job->data.inputs[i].name);
  return count;
}

/* What writes the labels of rows takes the tokens so far, and one input that they are written from. */
static bool check_writes(struct compilation *compilation) {
  const struct job *job = compilation->job;
  if (compilation->kind != PROGRAM_GENERATE || !job_has_rows(job)) return true;
  const bool takes_labels = model_takes(compilation->model, "predict", "labels");
  if (model_takes(compilation->model, "predict", "tokens") && !takes_labels &&
      inputs_taken(compilation, "predict") == 1)
    return true;
  diag_error(&compilation->diags, (struct location){.file = job->model.source},
             "a text is written from rows where 'predict' takes the tokens so far and one other input");
  diag_help(&compilation->diags, "write 'tensor predict(scope s, struct config c, tensor tokens, tensor %s)'",
            job->data.inputs[0].name);
  return false;
}

/* The model's source, with the function from which a program of the kind is made; and the job's hooks. */
static bool read_model(struct compilation *compilation) {
  if (compilation->model != NULL) return true;
  if (compilation->kind == PROGRAM_TRAIN && !hooks_check(compilation->arena, compilation->job, &compilation->diags))
    return false;
  if (!has_source(compilation)) return false;
  compilation->model = model_parse(compilation->arena, compilation->job->model.source, &compilation->diags);
  if (compilation->model == NULL) return false;
  if (compilation->kind != PROGRAM_GENERATE || model_has(compilation->model, "predict"))
    return check_writes(compilation);
  diag_error(&compilation->diags, (struct location){.file = compilation->job->model.source},
             "the model has no function 'predict', from which a text generator is made");
  diag_help(&compilation->diags, "write 'tensor predict(scope s, struct config c, tensor tokens)' that returns logits");
  return false;
}

static struct model_request request_of(const struct compilation *compilation, struct arena *arena,
                                       const struct job *job) {
  bool writes = compilation->kind == PROGRAM_GENERATE;
  int n_inputs;
  const struct model_input *inputs = describe_inputs(compilation, arena, job, &n_inputs);
  return (struct model_request){.entry = writes ? "predict" : "model",
                                .loss = !writes,
                                .prediction = !writes && job_wants_predictions(job),
                                .config = job->model.config,
                                .n_config = job->model.n_config,
                                .config_where = job_where(job, "model.config"),
                                .inputs = inputs,
                                .n_inputs = n_inputs};
}

/* The graph of a job that may differ from the compilation's own in its sizes. */
static struct graph *read_graph(void *context, struct arena *arena, const struct job *job, struct diagnostics *diags) {
  const struct compilation *compilation = context;
  const struct model_request request = request_of(compilation, arena, job);
  return model_graph(arena, compilation->model, &request, diags);
}

/* The config.json next to the weights, or in them where they are a folder. They are named from where the trainer will
 * run: here, or in the job's folder. */
static const char *config_path(const struct compilation *compilation, const char *weights) {
  struct arena *arena = compilation->arena;
  const char *in_job = arena_printf(arena, "%s/%s", folder_of(arena, compilation->options->argument), weights);
  const char *const folders[] = {weights, folder_of(arena, weights), in_job, folder_of(arena, in_job)};
  const char *path = NULL;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    if (i == 2 && weights[0] == '/') break;
    path = arena_printf(arena, "%s/config.json", folders[i]);
    if (access(path, F_OK) == 0) break;
  }
  return path;
}

/* What the config.json next to the weights, or in the folder that a key names, says against the job's config. */
static bool check_config(struct compilation *compilation, const char *key, const char *weights) {
  const struct job *job = compilation->job;
  const struct model_request request = request_of(compilation, compilation->arena, job);
  const char *unknown;
  if (weights == NULL) return true;
  const char *path = config_path(compilation, weights);
  if (!model_check_published(compilation->arena, compilation->model, &request, path, &compilation->diags, &unknown))
    return false;
  if (unknown[0] == '\0') return true;
  diag_warning(&compilation->diags, job_where(job, key), "%s has keys that the model's config does not have: %s", path,
               unknown);
  diag_help(&compilation->diags, "where the model computes otherwise, it is another model with the same shapes");
  return true;
}

/* The folder of a run's end is often that of its weights. */
static bool check_published(struct compilation *compilation) {
  const struct job *job = compilation->job;
  const char *weights = job->model.weights, *folder = job->checkpoint.folder_of;
  const bool same = weights != NULL && folder != NULL && strcmp(weights, folder) == 0;
  return check_config(compilation, "model.weights", weights) &&
         (same || check_config(compilation, "checkpoint.folder_of", folder));
}

/* ---- What was measured ---- */

/* The table that the job names. False with an error where it cannot serve. */
static bool read_tuning(struct compilation *compilation) {
  const char *name = compilation->job->devices.tuning;
  if (compilation->tuning != NULL || name == NULL) return true;
  const struct location where = job_where(compilation->job, "devices.tuning");
  const struct tuned_machine machine = tuning_machine(compilation->arena);
  /* Whether a GPU has what was measured is for the trainer to see. */
  const struct tuned_machine *here = target_of(compilation->job)->is_host ? &machine : NULL;
  const char *file = strcmp(name, "machine") == 0 ? tuning_path(compilation->arena, &machine) : name;
  if (file == NULL) {
    diag_error(&compilation->diags, where, "there is no cache folder in which this machine's table could be");
    diag_help(&compilation->diags, "set XDG_CACHE_HOME or HOME, or name a file");
    return false;
  }
  compilation->tuning = tuning_read(compilation->arena, file, here, where, &compilation->diags);
  return compilation->tuning != NULL;
}

/* ---- The stages in order ---- */

static bool read_job(struct compilation *compilation, const struct job_override *overrides, int n_overrides) {
  const char *file = compilation->options->argument, *text = compilation->text;
  compilation->job =
      text == NULL ? job_read(compilation->arena, file, overrides, n_overrides, &compilation->diags)
      : compilation->schema == NULL
          ? job_parse(compilation->arena, file, text, strlen(text), overrides, n_overrides, &compilation->diags)
          : job_parse_by(compilation->arena, compilation->schema, file, text, strlen(text), overrides, n_overrides,
                         &compilation->diags);
  if (compilation->job != NULL && compilation->kind != PROGRAM_TRAIN) job_leave_ranks(compilation->job);
  if (compilation->job != NULL && compilation->kind == PROGRAM_EVALUATE)
    *compilation->job = job_of_evaluation(compilation->job);
  return compilation->job != NULL && check_generate(compilation) && resolve_sequence_length(compilation) &&
         read_tuning(compilation);
}

/* The job with the keys that it left open: read again, as if the command line had set them. */
static bool close_job(struct compilation *compilation, const struct planner *planner) {
  enum { MOST = 5 };
  const struct options *options = compilation->options;
  size_t capacity = (size_t)options->n_overrides + MOST_KEYS + MOST;
  struct job_override *overrides = arena_alloc(compilation->arena, capacity * sizeof *overrides);
  int count = options->n_overrides, found = 0;
  for (int i = 0; i < count; i++) overrides[i] = options->overrides[i];
  if (compilation->job->parallelism.automatic) {
    found = find_mesh(compilation, planner, overrides + count);
    count += found;
    if (found == 0 || !read_job(compilation, overrides, count)) return false;
  }
  if (!is_open(compilation->job)) return true;
  if (!solve(compilation->arena, planner, compilation->job, &compilation->diags, overrides + count, &found))
    return false;
  return read_job(compilation, overrides, count + found);
}

const char *compilation_job_file(const struct options *options) {
  return options->n_overrides == 0 ? name_in_folder(options->argument) : NULL;
}

struct planner compilation_planner(struct compilation *compilation) {
  return (struct planner){.read = read_graph,
                          .context = compilation,
                          .request = {.kind = compilation->kind,
                                      .tuning = compilation->tuning,
                                      .shows_map = compilation->options->device_map}};
}

int compile_to_job(struct compilation *compilation) {
  if (!read_job(compilation, compilation->options->overrides, compilation->options->n_overrides)) return STATUS_BAD_JOB;
  if (!read_model(compilation) || !check_published(compilation)) return STATUS_BAD_JOB;
  const struct planner planner = compilation_planner(compilation);
  return compilation->leaves_open || close_job(compilation, &planner) ? STATUS_OK : STATUS_BAD_JOB;
}

int compile_to_graph(struct compilation *compilation) {
  if (compile_to_job(compilation) != STATUS_OK) return STATUS_BAD_JOB;
  struct planner planner = compilation_planner(compilation);
  planner.request.ends_differentiated = true;
  compilation->program =
      plan_least(compilation->arena, &planner, compilation->job, &compilation->diags, NULL, &compilation->dumped);
  return compilation->program != NULL ? STATUS_OK : STATUS_BAD_JOB;
}

int compile_to_program(struct compilation *compilation) {
  if (compile_to_job(compilation) != STATUS_OK) return STATUS_BAD_JOB;
  const struct planner planner = compilation_planner(compilation);
  if (compilation->kind == PROGRAM_TRAIN && !find_steps(compilation->job, &compilation->diags)) return STATUS_BAD_JOB;
  if (compilation->adjust != NULL) compilation->adjust(compilation->context, compilation->job);
  compilation->program = plan_least(compilation->arena, &planner, compilation->job, &compilation->diags,
                                    compilation->options->dump, &compilation->dumped);
  if (compilation->program == NULL) return STATUS_BAD_JOB;
  if (!check_memory(&planner, compilation->program, &compilation->diags)) return STATUS_BAD_JOB;
  find_savings(&planner, compilation->program);
  return STATUS_OK;
}

/* The config.json that the run leaves, in *text, where no folder has one; else why there is none. */
static void make_config(const struct compilation *compilation, const char **text, const char **reason) {
  const struct job *job = compilation->job;
  const char *folder = job->checkpoint.folder_of;
  *text = *reason = NULL;
  if (compilation->kind != PROGRAM_TRAIN) return;
  if (folder != NULL && access(config_path(compilation, folder), F_OK) == 0) return;
  const struct model_request request = request_of(compilation, compilation->arena, job);
  const int64_t positions = job_has_rows(job) ? 0 : job->data.sequence_length;
  *text = model_published_of_config(compilation->arena, compilation->model, &request, positions, reason);
  const bool adapts = job->model.lora.rank > 0 && !job->model.lora.merge,
             codes = job->model.quantize.on && !(job->model.lora.rank > 0 && job->model.lora.merge);
  const bool own = codes && job->model.quantize.quant_type != NULL;
  if (*text != NULL && codes && !own) *text = quantized_config(compilation->program, *text);
  if (*text == NULL || (!adapts && !own)) return;
  *text = NULL;
  *reason = own ? "transformers has no class for weights in codes of model.quantize.quant_type"
                : "model.lora.merge is false, and transformers would open the weights without the adapters";
}

/* What emission reads of a compilation, whose templates are opened. */
static struct emit_options emission_of(struct compilation *compilation) {
  if (compilation->templates == NULL)
    compilation->templates = templates_open(compilation->arena, compilation->options->templates);
  struct emit_options emit = {.templates = compilation->templates,
                              .version = ACCEL_VERSION,
                              .job_file = compilation->job_file,
                              .model = model_digest(compilation->model),
                              .classes = model_classes(compilation->arena, compilation->model),
                              .plan_text = report_text(compilation->program),
                              .summary = report_summary(compilation->program),
                              .modules = &compilation->modules};
  make_config(compilation, &emit.config, &emit.no_config);
  return emit;
}

int compile_to_module(struct compilation *compilation) {
  if (compilation->program->target->module == NULL) return STATUS_OK;
  const struct emit_options emit = emission_of(compilation);
  bool made = emit_modules(compilation->program, &emit, &compilation->modules, &compilation->diags);
  return made ? STATUS_OK : STATUS_BAD_JOB;
}

int compile_to_text(struct compilation *compilation, struct origins *origins, const char **text) {
  int status = compile_to_program(compilation);
  if (status == STATUS_OK) status = compile_to_module(compilation);
  if (status != STATUS_OK) return status;
  const struct emit_options emit = emission_of(compilation);
  const struct target *target = compilation->program->target;
  *text = emit_program(compilation->program, 0, &emit, origins, &compilation->diags);
  if (*text != NULL && target->texts.count > 1)
    compilation->second =
        emit_program(compilation->program, 1, &emit, compilation->second_origins, &compilation->diags);
  return *text != NULL && (target->texts.count == 1 || compilation->second != NULL) ? STATUS_OK : STATUS_CANNOT;
}

/* `path` with another ending; NULL where it has not the one. */
static const char *with_ending(struct arena *arena, const char *path, const char *from, const char *to) {
  const char *stem = without_ending(arena, path, from);
  return stem != NULL ? arena_printf(arena, "%s%s", stem, to) : NULL;
}

const char *compilation_second_path(const struct compilation *compilation, const char *program) {
  const char *const *suffixes = compilation->program->target->texts.suffixes;
  return with_ending(compilation->arena, program, suffixes[0], suffixes[1]);
}

const char *compilation_module_path(const struct compilation *compilation, const char *program, bool second) {
  const char *text = second ? compilation->modules.second : compilation->modules.main;
  const char *ending = compilation->program->target->module;
  if (text == NULL) return NULL;
  if (second) ending = arena_printf(compilation->arena, ".%s%s", compilation->modules.second_name, ending);
  return with_ending(compilation->arena, program, ".c", ending);
}

const char *compilation_program_path(const struct compilation *compilation, const char *path) {
  const struct target *target = compilation->program->target;
  return target->texts.count > 1
             ? with_ending(compilation->arena, path, target->texts.suffixes[1], target->texts.suffixes[0])
             : NULL;
}
