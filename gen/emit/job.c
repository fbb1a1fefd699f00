/* What templates see of the job: its data, how a step ends, user functions, the run. */
#include <string.h>

#include "gen/base/path.h"
#include "gen/emit/values.h"
#include "gen/program/optimizers.h"
#include "gen/program/sharding.h"

/* Text in C, or NULL, for each input of rows. */
static struct jinja_value arrays_value(struct arena *arena, const char **arrays, int count) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; arrays != NULL && i < count; i++) {
    struct jinja_value value = jinja_map(arena);
    set_literal(arena, value, "path", arrays[i]);
    jinja_push(arena, list, value);
  }
  return list;
}

/* {path, format, parts: [{path, arrays: [{path}], weight}]}: parts where a path is not enough. */
static struct jinja_value source_value(struct arena *arena, const struct data_source *source, int n_inputs) {
  static const char *const formats[] = {"BYTES", "NANOGPT", "LLMC", "CSV", "TOKENS", "NPY", "NPY_TOKENS", "NPZ"};
  struct jinja_value value = jinja_map(arena), parts = jinja_list(arena);
  bool one = source->n_parts == 1 && source->parts[0].arrays == NULL && source->parts[0].weight == 0;
  set_literal(arena, value, "path", one ? source->parts[0].path : NULL);
  set_text(arena, value, "format", formats[source->format]);
  for (int i = 0; !one && i < source->n_parts; i++) {
    struct jinja_value part = jinja_map(arena);
    set_literal(arena, part, "path", source->parts[i].path);
    jinja_set(arena, part, "arrays", arrays_value(arena, source->parts[i].arrays, n_inputs));
    set_real(arena, part, "weight", source->parts[i].weight);
    jinja_push(arena, parts, part);
  }
  jinja_set(arena, value, "parts", parts);
  return value;
}

/* [{index, name, literal, column, dtype, width, below, none, is_target}]: the tensors of rows. */
static struct jinja_value inputs_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->job->data.n_inputs && program->kind != PROGRAM_GENERATE; i++) {
    const struct data_input *input = &program->job->data.inputs[i];
    const struct input_demand *demand = &program->data.inputs[i];
    struct jinja_value value = jinja_map(arena);
    set_int(arena, value, "index", i);
    set_text(arena, value, "name", input->name);
    set_literal(arena, value, "literal", input->name);
    set_literal(arena, value, "column", input->column);
    set_text(arena, value, "dtype", input->is_integer ? "INT32" : "FLOAT32");
    set_int(arena, value, "width", input->width);
    set_int(arena, value, "below", input->is_integer ? demand->below : 0);
    set_int(arena, value, "none", input->is_integer ? demand->none : 0);
    set_bool(arena, value, "is_target", input->is_integer && demand->is_target);
    jinja_push(arena, list, value);
  }
  return list;
}

/* [{first, count, below, none}]: numbers of float32 inputs that the model takes as an index. */
static struct jinja_value indices_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->data.indices.count; i++) {
    const struct index_columns *columns = &program->data.indices.items[i];
    struct jinja_value value = jinja_map(arena);
    set_int(arena, value, "first", columns->first);
    set_int(arena, value, "count", columns->count);
    set_int(arena, value, "below", columns->below);
    set_int(arena, value, "none", columns->none);
    jinja_push(arena, list, value);
  }
  return list;
}

struct jinja_value data_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  struct jinja_value value = jinja_map(arena);
  jinja_set(arena, value, "train", source_value(arena, &job->data.train, job->data.n_inputs));
  jinja_set(arena, value, "eval", source_value(arena, &job->data.eval, job->data.n_inputs));
  set_real(arena, value, "eval_fraction", job->data.eval_fraction);
  set_int(arena, value, "batch_size", job->data.batch_size);
  bool others = program->kind == PROGRAM_TRAIN && job_evaluates_other_batches(job);
  set_int(arena, value, "eval_batch_size", others ? job_eval_batch(job) : job->data.batch_size);
  set_int(arena, value, "samples", job->data.samples);
  const char *order = program->kind == PROGRAM_TRAIN ? job->hooks.names[HOOK_ORDER] : NULL;
  set_text(arena, value, "order", order != NULL ? order : "");
  set_int(arena, value, "epoch_samples", job->data.epoch_samples);
  set_bool(arena, value, "shuffle", job->data.shuffle);
  set_int(arena, value, "prefetch", job->data.prefetch);
  static const char *const packings[] = {"", "DOCUMENTS", "PADDED"};
  set_text(arena, value, "packing", packings[job->data.packing]);
  set_bool(arena, value, "keep_last", job->data.keep_last);
  set_bool(arena, value, "even_batches", job->data.even_batches);
  set_bool(arena, value, "dispatch_batches", job->data.dispatch_batches);
  set_bool(arena, value, "uneven_inputs", job->data.uneven_inputs);
  bool leaves_out = job->data.packing != PACKING_NONE || job->data.keep_last;
  set_bool(arena, value, "leaves_out", leaves_out || program->data.no_target != 0);
  set_int(arena, value, "no_target", program->data.no_target);
  set_bool(arena, value, "counts_targets", program->data.counts_targets);
  jinja_set(arena, value, "indices", indices_value(program));
  set_int(arena, value, "data_seed", (int64_t)job->data.data_seed);
  set_int(arena, value, "sequence_length", job->data.sequence_length);
  jinja_set(arena, value, "inputs", inputs_value(program));
  set_bool(arena, value, "names_inputs", job->data.names_inputs);
  set_bool(arena, value, "masked", job->data.masking.on);
  set_int(arena, value, "mask_token", job->data.masking.mask_token);
  set_real(arena, value, "mask_probability", job->data.masking.probability);
  set_real(arena, value, "mask_random", job->data.masking.random);
  set_real(arena, value, "mask_keep", job->data.masking.keep);
  set_bool(arena, value, "is_table", job_has_rows(job));
  return value;
}

static struct jinja_value scaler_value(struct arena *arena, const struct job *job) {
  struct jinja_value value = jinja_map(arena);
  set_real(arena, value, "init_scale", job->precision.grad_scaler.init_scale);
  set_bool(arena, value, "dynamic", job->precision.grad_scaler.dynamic);
  set_real(arena, value, "growth_factor", job->precision.grad_scaler.growth_factor);
  set_real(arena, value, "backoff_factor", job->precision.grad_scaler.backoff_factor);
  set_int(arena, value, "growth_interval", job->precision.grad_scaler.growth_interval);
  set_int(arena, value, "hysteresis", job->precision.grad_scaler.hysteresis);
  set_bool(arena, value, "consecutive_hysteresis", job->precision.grad_scaler.consecutive_hysteresis);
  set_real(arena, value, "min_loss_scale", job->precision.grad_scaler.min_loss_scale);
  return value;
}

struct jinja_value step_end_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  struct jinja_value value = jinja_map(arena);
  const struct step_end step_end = program->step_end;
  set_bool(arena, value, "counts", step_end.counts);
  set_text(arena, value, "counted", step_end.counts ? step_end.mean.count->name : "");
  set_bool(arena, value, "by_micro_batches", step_end.by_micro_batches);
  set_real(arena, value, "divisor", step_end.divisor);
  set_real(arena, value, "numerator", step_end.numerator);
  set_int(arena, value, "contributors", (int64_t)step_end.contributors);
  set_bool(arena, value, "short_steps", step_end.short_steps);
  set_bool(arena, value, "stops", job->training.on_nonfinite == NONFINITE_STOP);
  set_bool(arena, value, "skips", step_end.skips);
  set_bool(arena, value, "unscales", step_end.unscales);
  set_bool(arena, value, "factor", step_end.factor);
  set_bool(arena, value, "norm_pass", step_end.norm_pass);
  set_bool(arena, value, "scales", step_end.scaler);
  set_bool(arena, value, "seeds", program->step_end.takes_seed);
  set_bool(arena, value, "uneven_inputs", step_end.uneven_inputs);
  set_bool(arena, value, "divide_by_initial_world_size", job->data.divide_by_initial_world_size);
  set_bool(arena, value, "delays", step_end.delays);
  if (step_end.scaler) jinja_set(arena, value, "scaler", scaler_value(arena, job));
  return value;
}

/* {metric, greater, patience, threshold, restore_best}; nothing where evaluations neither end the run nor are compared.
 */
static struct jinja_value stopping_value(struct arena *arena, const struct job *job) {
  struct jinja_value value = jinja_map(arena);
  int metric = job->training.early_stopping.metric;
  if (!job_compares_evaluations(job)) return value;
  set_literal(arena, value, "metric", metric >= 0 ? job_metric_names[metric] : NULL);
  set_bool(arena, value, "greater", job->training.early_stopping.greater);
  set_int(arena, value, "patience", job->training.early_stopping.patience);
  set_real(arena, value, "threshold", job->training.early_stopping.threshold);
  set_bool(arena, value, "restore_best", job->training.early_stopping.restore_best);
  set_bool(arena, value, "averages", job->training.ema.evaluate);
  return value;
}

struct jinja_value hooks_value(struct arena *arena, const struct job *job) {
  struct jinja_value value = jinja_map(arena), names = jinja_list(arena);
  if (job->hooks.source == NULL) return value;
  for (int i = 0; i < HOOKS; i++) {
    const char *name = job->hooks.names[i];
    bool before = false;
    for (int k = 0; k < i && name != NULL; k++)
      before |= job->hooks.names[k] != NULL && strcmp(name, job->hooks.names[k]) == 0;
    set_text(arena, value, job_hook_keys[i], name != NULL ? name : "");
    if (name != NULL && !before && i < HOOKS_OF_PROGRESS) jinja_push(arena, names, jinja_string(arena, name));
  }
  jinja_set(arena, value, "names", names);
  set_comment(arena, value, "source", name_in_folder(job->hooks.source));
  return value;
}

static void set_epochs(struct arena *arena, struct jinja_value map, const char *key, struct epochs epochs) {
  struct jinja_value value = jinja_map(arena);
  set_int(arena, value, "count", epochs.count);
  set_int(arena, value, "parts", epochs.count > 0 ? epochs.parts : 0);
  jinja_set(arena, map, key, value);
}

/* For which tools the run writes files: {sinks, project, run_name, tags, logging_dir}; `sinks` is empty without. */
static struct jinja_value tracking_value(struct arena *arena, const struct job *job) {
  struct jinja_value value = jinja_map(arena), sinks = jinja_list(arena), tags = jinja_list(arena);
  for (int i = 0; i < SINKS; i++)
    if (job->tracking.sinks[i]) jinja_push(arena, sinks, jinja_string(arena, job_sink_names[i]));
  for (int i = 0; job->tracking.tags[i] != NULL; i++) {
    struct jinja_value tag = jinja_map(arena);
    set_literal(arena, tag, "literal", job->tracking.tags[i]);
    jinja_push(arena, tags, tag);
  }
  jinja_set(arena, value, "sinks", sinks);
  jinja_set(arena, value, "tags", tags);
  set_literal(arena, value, "project", job->tracking.project);
  set_literal(arena, value, "run_name", job->tracking.run_name);
  set_literal(arena, value, "logging_dir", job->tracking.logging_dir);
  return value;
}

struct jinja_value training_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  struct jinja_value value = jinja_map(arena);
  set_int(arena, value, "steps", job->training.steps);
  set_int(arena, value, "seed", (int64_t)job->training.seed);
  const bool staged = program->ranks.pipeline.stages > 0 || program->entry.deferred != NULL;
  set_real(arena, value, "matmul_flops", staged ? 0 : program->figures.matmul_flops_per_step);
  set_int(arena, value, "micro_steps", job->accumulation.num_steps);
  set_bool(arena, value, "accumulates", gradients_add_up(program));
  set_int(arena, value, "eval_interval", job->training.eval_interval);
  set_epochs(arena, value, "eval_epochs", job->training.eval_epochs);
  set_int(arena, value, "eval_delay", job->training.eval_delay);
  set_epochs(arena, value, "eval_delay_epochs", job->training.eval_delay_epochs);
  set_bool(arena, value, "eval_on_start", job->training.eval_on_start);
  set_bool(arena, value, "evaluates", job_evaluates(job));
  set_int(arena, value, "eval_iters", job->training.eval_iters);
  set_int(arena, value, "save_every", job->checkpoint.every);
  set_epochs(arena, value, "save_epochs", job->checkpoint.epochs);
  set_int(arena, value, "log_every", job->tracking.every);
  set_epochs(arena, value, "log_epochs", job->tracking.epochs);
  set_bool(arena, value, "log_first", job->tracking.first_step);
  set_literal(arena, value, "project_dir", job->checkpoint.project_dir);
  set_int(arena, value, "threads", job->devices.threads);
  struct jinja_value metrics = jinja_list(arena);
  for (int i = 0; i < METRICS; i++)
    if (job->training.metrics[i]) jinja_push(arena, metrics, jinja_string(arena, job_metric_names[i]));
  jinja_set(arena, value, "metrics", metrics);
  const bool gathers = evaluation_gathers_averages(program);
  const char *averages = job_optimizer(job)->averages ? "all_gradients"
                         : job->training.ema.evaluate ? "all_averages"
                                                      : "";
  set_text(arena, value, "averaged", gathers || is_sharded(program) ? "" : averages);
  set_text(arena, value, "gathers_averages", gathers ? averages : "");
  jinja_set(arena, value, "stopping", stopping_value(arena, job));
  set_bool(arena, value, "layer_norms", job->tracking.layer_norms);
  set_bool(arena, value, "noise_scale", job->tracking.noise_scale);
  jinja_set(arena, value, "tracking", tracking_value(arena, job));
  set_real(arena, value, "noise_alpha", 1 - job->tracking.noise_decay);
  set_bool(arena, value, "deterministic", job->training.deterministic);
  return value;
}
