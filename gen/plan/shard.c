#include "gen/plan/shard.h"

#include "gen/plan/groups.h"

bool is_divided(const struct program *program) {
  return program->kind == PROGRAM_TRAIN && program->job->parallelism.axes[AXIS_DP_SHARD] > 1;
}

static const struct span *part_of(const struct program *program, const struct weight *weight) {
  for (int i = 0; i < program->parts.count; i++)
    if (program->parts.items[i].weight == weight) return &program->parts.items[i];
  return NULL;
}

bool shard_accepts(const struct program *program, const struct weight *weight) {
  const struct span *part = part_of(program, weight), *last = &program->spans.items[program->spans.count - 1];
  return part->first - last->first == part->gradient - last->gradient && same_numbers(&part->numbers, &last->numbers);
}

/* A weight with what pads it to the next one. */
static int64_t padded(const struct weight *weight) {
  return (shape_count(weight->parameter->shape) + SHARD_LINE - 1) / SHARD_LINE * SHARD_LINE;
}

void shard_begin(struct program *program, const struct weight *weight) {
  struct span span = *part_of(program, weight);
  span.end = span.first + padded(weight);
  ARENA_PUSH(program->arena, program->spans, span);
}

void shard_extend(struct program *program, const struct weight *weight) {
  struct span *last = &program->spans.items[program->spans.count - 1];
  const struct span *part = part_of(program, weight);
  if (part->first < last->first) {
    last->first = part->first;
    last->gradient = part->gradient;
    last->weight = weight;
  } else {
    last->end = part->first + padded(weight);
  }
}

void shard_cut(struct program *program) {
  int64_t ranks = program->job->parallelism.axes[AXIS_DP_SHARD];
  for (int i = 0; i < program->spans.count; i++) {
    struct span *span = &program->spans.items[i];
    span->piece = (span->end - span->first) / ranks / SHARD_LINE * SHARD_LINE;
    span->state[0] = program->own_elements;
    program->own_elements += shard_last(program, span);
  }
}

int64_t shard_last(const struct program *program, const struct span *span) {
  return span->end - span->first - (program->job->parallelism.axes[AXIS_DP_SHARD] - 1) * span->piece;
}

void shard_gather(struct program *program) {
  for (int i = 0; i < program->spans.count; i++) {
    const struct span *span = &program->spans.items[i];
    struct collective gather = {.kind = COLLECTIVE_ALL_GATHER,
                                .axis = AXIS_DP_SHARD,
                                .what = arena_printf(program->arena, "weights from %s on", span->weight->path),
                                .width = dtype_size(DTYPE_FLOAT32),
                                .first = span->first,
                                .count = span->end - span->first,
                                .times = 1};
    ARENA_PUSH(program->arena, program->collectives, gather);
  }
}
