#include "gen/plan/ranks/stage_traffic.h"

#include "gen/plan/ranks/sequence.h"
#include "gen/plan/ranks/shard.h"
#include "gen/program/sharding.h"
#include "gen/program/stage_parameters.h"
#include "gen/program/storage.h"

void stage_add_send(struct program *program, const char *what, int64_t count, int64_t width, int64_t times) {
  const struct collective send = {.kind = COLLECTIVE_SEND,
                                  .axis = axis_sharding(program, SHARDED_LAYERS),
                                  .what = what,
                                  .width = width,
                                  .count = count,
                                  .times = times};
  ARENA_PUSH(program->arena, program->ranks.collectives, send);
}

int64_t stage_padded_elements(const struct weight *weight) {
  const int64_t size = dtype_size(DTYPE_FLOAT32);
  return arena_aligned(shape_count(weight->parameter->shape) * size) / size;
}

/* What a rank sends of a gradient that stages of several ranks add to: where ranks shard it, its shard. */
static int64_t shared_elements(const struct program *program, const struct weight *weight) {
  for (int i = 0; i < program->optimizer.flat_ranges.count && is_sharded(program); i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    if (range->weight == weight) return shard_last(program, range);
  }
  return stage_padded_elements(weight);
}

/* Ranks before `end` that use a weight. */
static int users(const struct pipeline *pipeline, const struct weight *weight, int end) {
  int count = 0;
  for (int k = 0; k < end; k++) count += rank_uses(pipeline, k, weight->path);
  return count;
}

void stage_add_shared(struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const int ranks = users(pipeline, weight, pipeline->ranks);
    const char *number = ranks == 2 ? "two" : arena_printf(program->arena, "%d", ranks);
    const char *what = arena_printf(program->arena, "gradients of %s, of %s stages", weight->path, number);
    if (ranks > 1 && weight->gradient >= 0)
      stage_add_send(program, what, shared_elements(program, weight), dtype_size(DTYPE_FLOAT32), ranks == 2 ? 1 : 3);
  }
}

/* Whether a function has a part in what the program does over and over: an evaluation within training has none. */
static bool is_repeated(const struct program *program, const struct function *function) {
  if (program->kind == PROGRAM_TRAIN) return function->forward != NULL || function->backward != NULL;
  for (int i = 0; i < repeated_entry(program)->n_steps; i++)
    if (repeated_entry(program)->steps[i].callee == function) return true;
  return function == repeated_entry(program);
}

static int64_t micro_batches(const struct program *program) {
  return program->kind == PROGRAM_TRAIN ? program->job->accumulation.num_steps : 1;
}

void stage_add_crossings(struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  const int64_t times = micro_batches(program) * (pipeline->stages / pipeline->ranks);
  for (int i = 0; i < pipeline->crossings.count; i++) {
    const struct crossing *crossing = &pipeline->crossings.items[i];
    bool forwards = crossing->from < crossing->to;
    bool first = (forwards ? crossing->from : crossing->to) == 0;
    bool steps = is_repeated(program, crossing->function);
    const char *what = forwards ? "what the next stage takes" : "its gradients, of the stage before";
    if (first && steps) stage_add_send(program, what, crossing->count, dtype_size(crossing->storage->dtype), times);
  }
}

/* ---- Of each rank ---- */

/* What its stages give to the stages before and after them. */
static int64_t crossing_bytes(const struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  int64_t bytes = 0;
  for (int i = 0; i < pipeline->crossings.count; i++) {
    const struct crossing *crossing = &pipeline->crossings.items[i];
    if (crossing->from % pipeline->ranks == rank && is_repeated(program, crossing->function))
      bytes += crossing->count * dtype_size(crossing->storage->dtype);
  }
  return micro_batches(program) * bytes;
}

/* Gradients of what stages of several ranks use: the first and the last of these give them once, others three times. */
static int64_t shared_bytes(const struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  int64_t elements = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const int all = users(pipeline, weight, pipeline->ranks), before = users(pipeline, weight, rank);
    if (all < 2 || weight->gradient < 0 || !rank_uses(pipeline, rank, weight->path)) continue;
    elements += (before == 0 || before == all - 1 ? 1 : 3) * shared_elements(program, weight);
  }
  return elements * dtype_size(DTYPE_FLOAT32);
}

int64_t stage_sent_bytes(const struct program *program, int rank) {
  const enum axis layers = axis_sharding(program, SHARDED_LAYERS);
  int64_t bytes = crossing_bytes(program, rank) + shared_bytes(program, rank);
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct collective *collective = &program->ranks.collectives.items[i];
    if (collective->axis == layers && collective->kind != COLLECTIVE_SEND)
      bytes += collective->times * collective->count * collective->width;
  }
  return bytes;
}
