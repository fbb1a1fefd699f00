#include "gen/plan/ranks/disk_layers.h"

#include "gen/plan/memory/weights.h"
#include "gen/plan/ranks/fsdp_layers.h"
#include "gen/plan/ranks/layer_search.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"
#include "gen/program/streams.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

static const char key[] = "parallelism.offload.param";

/* ---- What does not go with them ---- */

/* A key with which layers stay in memory, and what could be instead. */
struct obstacle {
  bool is_there;
  const char *key, *why, *help;
};

static bool refuse(const struct program *program, const struct obstacle *obstacle, struct diagnostics *diags) {
  diag_error(diags, job_where(program->job, key), "'%s: nvme' does not go with '%s': %s", key, obstacle->key,
             obstacle->why);
  diag_note(diags, job_where(program->job, obstacle->key), "'%s' is set here", obstacle->key);
  diag_help(diags, "%s", obstacle->help);
  return false;
}

/* The update of a layer is within the backward, by the gradients of one micro-batch of one rank. */
static bool check_update(const struct program *program, struct diagnostics *diags) {
  static const char whole[] = "the whole gradient must be known before a weight moves, and layers have theirs one "
                              "after the other";
  static const char instead[] = "leave it out, or leave out parallelism.offload.param: states alone on a disk can be "
                                "updated after the backward";
  const struct job *job = program->job;
  const struct obstacle obstacles[] = {
      {job->optimizer.clip_grad_norm > 0, "optimizer.clip_grad_norm", whole,
       "use optimizer.clip_grad_value, or leave out parallelism.offload.param"},
      {job->accumulation.num_steps > 1, "accumulation.num_steps", "gradients of micro-batches add up in memory",
       "raise data.batch_size instead, with memory.activation_checkpointing: all"},
      {program->step_end.scaler, "precision.grad_scaler.enabled", whole, "use precision.mixed_precision: bf16"},
      {program->step_end.skips, "training.on_nonfinite", whole, "use on_nonfinite: stop"},
      {program->step_end.factor, "accumulation.normalize", whole, instead},
      {job_has_tree(job), "parallelism.reproducible", "gradients add up in the order of a tree, in memory", instead},
      {job->tracking.noise_scale, "tracking.noise_scale", whole, instead},
      {job->tracking.layer_norms, "tracking.grad_norms", "gradients of layers are gone after their update", instead},
      {job->optimizer.norm_type != NORM_2, "optimizer.norm_type", "squares of gradients add up within the backward",
       "use norm_type: 2"},
  };
  for (size_t i = 0; i < sizeof obstacles / sizeof *obstacles; i++)
    if (obstacles[i].is_there) return refuse(program, &obstacles[i], diags);
  return true;
}

static bool check_weights(const struct program *program, struct diagnostics *diags) {
  static const char all[] = "it takes all weights in memory";
  static const char instead[] = "leave it out, or have the weights in memory: leave out parallelism.offload.param";
  const struct job *job = program->job;
  const struct obstacle obstacles[] = {
      {job->parallelism.offload.optimizer != OFFLOAD_NVME, "parallelism.offload.optimizer",
       "states of layers are updated with them", "set parallelism.offload.optimizer: nvme, too"},
      {job->devices.ranks > 1, "devices.per_node", "layers come to a trainer of one process alone",
       "use one process, or leave out parallelism.offload.param"},
      {job->memory.maps, "memory.device_map", "a map is of layers that stay in the file of model.weights",
       "leave it out: all layers of the model are on the disk"},
      {job->model.lora.rank > 0, "model.lora", "layers that adapters are of are not trained",
       "let frozen layers stream from the file of model.weights, with memory.device_map"},
      {job->model.quantize.on, "model.quantize", "codes are not trained",
       "let frozen layers stream from the file of model.weights, with memory.device_map"},
      {job->precision.fp8.on, "precision.mixed_precision", "scales of tensors are found over all layers",
       "use precision.mixed_precision: bf16"},
      {job->precision.param != PRECISION_NO, "precision.param_dtype", "layers are float32 on the disk",
       "use precision.mixed_precision: bf16"},
      {job->training.ema.decay > 0, "training.ema", "averages of the weights are in memory", instead},
      {job->training.early_stopping.restore_best, "training.early_stopping.restore_best", all, instead},
      {job->memory.activation_checkpointing == CHECKPOINTING_EVERY, "memory.activation_checkpointing",
       "every runs several layers again together, of which two slots have one each",
       "use activation_checkpointing: all"},
  };
  for (size_t i = 0; i < sizeof obstacles / sizeof *obstacles; i++)
    if (obstacles[i].is_there) return refuse(program, &obstacles[i], diags);
  return true;
}

/* All parameters have gradients in memory for as long as they are their update's. */
static bool check_trained(const struct program *program, struct diagnostics *diags) {
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    if (weight->gradient >= 0) continue;
    diag_error(diags, job_where(program->job, key), "'%s: nvme' is of models that are trained whole, and '%s' is not",
               key, weight->path);
    diag_help(diags, "let frozen layers stream from the file of model.weights, with memory.device_map");
    return false;
  }
  return true;
}

/* ---- Where they are ---- */

static void add_units(struct program *program, const struct weight_array *array) {
  for (int i = 0; i < array->count; i++) {
    const char **path = arena_alloc(program->arena, sizeof *path);
    *path = array->elements[i]->path;
    const struct fsdp_unit unit = {.paths = path, .layers = 1, .on_disk = true};
    ARENA_PUSH(program->arena, program->ranks.fsdp_units, unit);
    if (i > 0) layers_forget_zeros(program, array->elements[i]);
  }
  layers_give_slots(program->weights, array->elements[0]->path, FSDP_SLOTS);
  layers_give_slots(program->gradients, array->elements[0]->path, 1);
}

bool plan_disk_layers(struct program *program, struct diagnostics *diags) {
  if (!layers_are_on_disk(program)) return true;
  if (!check_weights(program, diags) || !check_update(program, diags) || !check_trained(program, diags)) return false;
  const struct layer_search search = search_layers(program);
  for (int i = 0; i < search.count; i++)
    if (begins_layers(&search, i)) add_units(program, search.items[i].element->array);
  if (program->ranks.fsdp_units.count == 0) {
    diag_error(diags, job_where(program->job, key),
               "the model has no loop over layers whose parameters are those of one call each, to have two in memory");
    diag_help(diags, "leave out parallelism.offload.param: optimizer: nvme has the states on a disk");
    return false;
  }
  program->streams = true;
  weights_fold(program->weights);
  weights_fold(program->gradients);
  place_units(program);
  return true;
}
