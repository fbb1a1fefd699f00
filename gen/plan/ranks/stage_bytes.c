#include "gen/plan/ranks/stage_bytes.h"

#include <string.h>

#include "gen/program/sharding.h"
#include "gen/program/stage_parameters.h"
#include "gen/program/storage.h"
#include "gen/program/weights.h"

static bool has(const struct step *step, int stage) {
  return (step->stages >> stage & 1) != 0;
}

static bool receives(const struct program *program, const struct storage *storage, int stage) {
  const struct crossing_list *crossings = &program->ranks.pipeline.crossings;
  for (int i = 0; i < crossings->count; i++)
    if (crossings->items[i].storage == storage && crossings->items[i].to == stage) return true;
  return false;
}

/* Whether a stage has made what a function that stages divide gives: the last of them. */
static bool gives(const struct program *program, const struct step *step, int stage) {
  const bool divided = step->callee != NULL && step->callee->staged;
  return !divided || stage == (step->callee->forward != NULL ? 0 : program->ranks.pipeline.stages - 1);
}

/* Whether a stage makes it in the function, or in its backward for what is deferred there. */
static bool writes(const struct program *program, const struct function *function, const struct storage *storage,
                   int stage) {
  for (int i = 0; i < function->n_steps; i++)
    for (int k = 0; has(&function->steps[i], stage) && gives(program, &function->steps[i], stage) &&
                    k < function->steps[i].node->n_outputs;
         k++) {
      const struct view *output = &function->steps[i].outputs[k];
      if (output->storage != NULL && storage_root(output->storage) == storage) return true;
    }
  if (function->backward != NULL && function->backward->deferred != NULL)
    return writes(program, function->backward, storage, stage);
  return false;
}

/* What a stage saves of a micro-batch in a function that stages divide. */
static int64_t saved_bytes(const struct program *program, const struct function *function, int stage) {
  int64_t bytes = 0;
  for (int i = 0; i < function->storages.count; i++) {
    const struct storage *storage = function->storages.items[i];
    if (storage->kind != STORAGE_SAVED || storage->frame != NULL) continue;
    if (writes(program, function, storage, stage))
      bytes += arena_aligned(storage_bytes(storage));
    else if (receives(program, storage, stage)) /* one copy of a row of them */
      bytes += arena_aligned(storage->count * dtype_size(storage->dtype));
  }
  for (int i = 0; i < function->n_steps; i++) {
    const struct step *step = &function->steps[i];
    if (step->callee == NULL || !has(step, stage)) continue;
    bytes += step->callee->staged ? saved_bytes(program, step->callee, stage)
                                  : step->node->call->count * step->callee->saved_bytes;
  }
  return bytes;
}

/* Gradients of a stage on their way, which have memory of their own. */
static int64_t outgoing_bytes(const struct program *program, int stage) {
  const struct crossing_list *crossings = &program->ranks.pipeline.crossings;
  int64_t bytes = 0;
  for (int i = 0; i < crossings->count; i++) {
    const struct crossing *crossing = &crossings->items[i];
    if (crossing->outgoing != NULL && crossing->from == stage)
      bytes += arena_aligned(crossing->count * dtype_size(crossing->storage->dtype));
  }
  return bytes;
}

int64_t stage_elements(const struct program *program, int rank) {
  int64_t elements = 0;
  for (int i = 0; i < program->ranks.pipeline.ranges.count; i++) {
    const struct stage_range *range = &program->ranks.pipeline.ranges.items[i];
    if (range->stage == rank) elements += range->end - range->first;
  }
  return elements;
}

int64_t stage_summed_elements(const struct program *program, int rank, enum axis axis) {
  int64_t elements = 0;
  for (int i = 0; i < program->ranks.pipeline.ranges.count; i++) {
    const struct stage_range *range = &program->ranks.pipeline.ranges.items[i];
    const bool own = range->stage == rank && range->gradient >= 0;
    const bool summed = own && (axis == AXES || axes_have(summed_along(program, range->weight->parameter), axis));
    if (summed) elements += range->end - range->first;
  }
  return elements;
}

int64_t stage_own_elements(const struct program *program, int rank, enum axis axis) {
  int64_t elements = 0;
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    const bool summed = axis == AXES || axes_have(summed_along(program, range->weight->parameter), axis);
    if (range->stage == rank && summed) elements += shard_last(program, range);
  }
  return elements;
}

/* What a rank has of a state of the optimizer. */
static int64_t state_part(const struct program *program, const struct state *state, int rank) {
  const struct stage_range_list *ranges = &program->ranks.pipeline.ranges;
  int64_t elements = 0;
  if (is_sharded(program)) return stage_own_elements(program, rank, AXES) * dtype_size(state->dtype);
  for (int i = 0; i < state->n_slices; i++)
    if (rank_uses(&program->ranks.pipeline, rank, state->slices[i].weight->path))
      elements += shape_count(state->slices[i].shape);
  for (int i = 0; i < ranges->count && state->n_slices == 0; i++)
    if (ranges->items[i].stage == rank) elements += ranges->items[i].end - ranges->items[i].first;
  return elements * dtype_size(state->dtype);
}

int64_t stage_held_bytes(const struct program *program, const struct weight_tree *tree, int rank) {
  int64_t bytes = 0, *offsets = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *offsets);
  int count = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const bool frozen = tree == program->gradients && weight->gradient < 0;
    if (!rank_uses(&program->ranks.pipeline, rank, weight->path) || frozen) continue;
    const int64_t offset = weight_offset(tree, weight->path);
    bool again = false;
    for (int k = 0; k < count && !again; k++) again = offsets[k] == offset;
    if (again) continue;
    offsets[count++] = offset;
    bytes += arena_aligned(shape_count(weight->parameter->shape) * dtype_size(DTYPE_FLOAT32));
  }
  return bytes;
}

struct stage_bytes stage_bytes(const struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct stage_bytes bytes = {0};
  const int64_t size = dtype_size(DTYPE_FLOAT32);
  int64_t elements = stage_elements(program, rank);
  bytes.gradients = stage_summed_elements(program, rank, AXES) * size;
  const int64_t own = stage_own_elements(program, rank, AXES) * size;
  const bool parts = program->kind == PROGRAM_TRAIN && weights_are_split(program);
  if (parts) elements = stage_held_bytes(program, program->weights, rank) / size;
  bytes.weights = elements * size + (parts ? own : 0);
  if (shard_adds_up(program)) bytes.gradients = stage_held_bytes(program, program->gradients, rank);
  if (shard_has_own_gradients(program)) bytes.gradients += own;
  if (shard_needs_receive_buffer(program)) bytes.gradients += own;
  if (program->bits16 != DTYPE_FLOAT32) bytes.weights += elements * dtype_size(program->bits16);
  for (int i = 0; i < program->states.count; i++)
    if (strcmp(program->states.items[i].file, "optimizer") == 0)
      bytes.optimizer += state_part(program, &program->states.items[i], rank);
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks)
    bytes.activations +=
        pipeline->slots[s] * saved_bytes(program, program->entry.forward, s) + outgoing_bytes(program, s);
  return bytes;
}
