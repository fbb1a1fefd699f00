#include "gen/plan/ranks/stage_bytes.h"

#include <string.h>

#include "gen/plan/ranks/stage_memory.h"
#include "gen/program/sharding.h"
#include "gen/program/stage_parameters.h"
#include "gen/program/storage.h"
#include "gen/program/weights.h"

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

/* What a rank has of a state of the optimizer, or of the averages. */
static int64_t state_part(const struct program *program, const struct state *state, int rank) {
  const struct stage_range_list *ranges = &program->ranks.pipeline.ranges;
  int64_t elements = 0;
  for (int i = 0; i < program->optimizer.flat_ranges.count && is_sharded(program); i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    int64_t first;
    if (range->stage == rank) elements += shard_of_state(program, state, range, &first);
  }
  if (is_sharded(program)) return elements * dtype_size(state->dtype);
  for (int i = 0; i < state->n_slices; i++)
    if (rank_uses(&program->ranks.pipeline, rank, state->slices[i].weight->path))
      elements += shape_count(state->slices[i].shape);
  for (int i = 0; i < ranges->count && state->n_slices == 0; i++)
    if (ranges->items[i].stage == rank) elements += ranges->items[i].end - ranges->items[i].first;
  return elements * dtype_size(state->dtype);
}

int64_t stage_held_bytes(const struct program *program, const struct weight_tree *tree, int rank) {
  const struct byte_ranges ranges = stage_tree_ranges(program, tree, rank);
  return byte_ranges_sum(&ranges);
}

struct stage_bytes stage_bytes(const struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct stage_bytes bytes = {0};
  const int64_t size = dtype_size(DTYPE_FLOAT32);
  int64_t elements = stage_elements(program, rank);
  bytes.gradients = stage_summed_elements(program, rank, AXES) * size;
  const int64_t own = stage_own_elements(program, rank, AXES) * size;
  const bool parts = program->kind == PROGRAM_TRAIN && weights_are_split(program);
  const struct byte_ranges saved = stage_saved_ranges(program, rank);
  if (parts) elements = stage_held_bytes(program, program->weights, rank) / size;
  bytes.weights = elements * size + (parts ? own : 0);
  if (shard_adds_up(program)) bytes.gradients = stage_held_bytes(program, program->gradients, rank);
  if (shard_has_own_gradients(program)) bytes.gradients += own;
  if (shard_needs_receive_buffer(program)) bytes.gradients += own;
  if (program->bits16 != DTYPE_FLOAT32) bytes.weights += elements * dtype_size(program->bits16);
  for (int i = 0; i < program->states.count; i++) {
    const struct state *state = &program->states.items[i];
    if (strcmp(state->file, "optimizer") == 0) bytes.optimizer += state_part(program, state, rank);
    if (strcmp(state->file, "ema") == 0) bytes.averages = state_part(program, state, rank);
  }
  bytes.activations = byte_ranges_sum(&saved);
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks) bytes.activations += outgoing_bytes(program, s);
  return bytes;
}
