#include "gen/plan/ranks/shard.h"

#include "gen/plan/ranks/fsdp_layers.h"
#include "gen/program/optimizers.h"
#include "gen/program/target.h"

bool is_sharded(const struct program *program) {
  return program->kind == PROGRAM_TRAIN && program->job->parallelism.axes[AXIS_DP_SHARD] > 1;
}

bool shard_has_own_gradients(const struct program *program) {
  return is_sharded(program) && (!job_has_tree(program->job) || program->job->accumulation.num_steps == 1);
}

static const struct span *part_of(const struct program *program, const struct weight *weight) {
  for (int i = 0; i < program->optimizer.parts.count; i++)
    if (program->optimizer.parts.items[i].weight == weight) return &program->optimizer.parts.items[i];
  return NULL;
}

bool shard_accepts(const struct program *program, const struct weight *weight) {
  const struct span *part = part_of(program, weight),
                    *last = &program->optimizer.spans.items[program->optimizer.spans.count - 1];
  if (fsdp_unit_of(program, weight) != last->fsdp_unit) return false;
  return part->first - last->first == part->gradient - last->gradient && same_numbers(&part->numbers, &last->numbers);
}

/* A weight with what pads it to the next one. */
static int64_t padded(const struct weight *weight) {
  return (shape_count(weight->parameter->shape) + SHARD_LINE - 1) / SHARD_LINE * SHARD_LINE;
}

void shard_begin(struct program *program, const struct weight *weight) {
  struct span span = *part_of(program, weight);
  span.end = span.first + padded(weight);
  span.fsdp_unit = fsdp_unit_of(program, weight);
  ARENA_PUSH(program->arena, program->optimizer.spans, span);
}

void shard_extend(struct program *program, const struct weight *weight) {
  struct span *last = &program->optimizer.spans.items[program->optimizer.spans.count - 1];
  const struct span *part = part_of(program, weight);
  if (part->first < last->first) {
    last->first = part->first;
    last->gradient = part->gradient;
    last->weight = weight;
  } else {
    last->end = part->first + padded(weight);
  }
}

/* Whether a weight is adjacent to the last span, and both together are no more than one message. */
static bool joins_last_span(const struct program *program, const struct span *part) {
  if (program->optimizer.spans.count == 0) return false;
  const struct span *last = &program->optimizer.spans.items[program->optimizer.spans.count - 1];
  int64_t bytes = (last->end - last->first + padded(part->weight)) * dtype_size(DTYPE_FLOAT32);
  return last->end == part->first && bytes <= program->job->parallelism.bucket_bytes &&
         shard_accepts(program, part->weight);
}

void shard_all(struct program *program) {
  program->optimizer.spans = (struct span_list){0};
  for (int i = 0; i < program->optimizer.parts.count; i++) {
    const struct span *part = &program->optimizer.parts.items[i];
    if (joins_last_span(program, part))
      shard_extend(program, part->weight);
    else
      shard_begin(program, part->weight);
  }
  shard_cut(program);
}

void shard_cut(struct program *program) {
  int64_t ranks = program->job->parallelism.axes[AXIS_DP_SHARD];
  for (int i = 0; i < program->optimizer.spans.count; i++) {
    struct span *span = &program->optimizer.spans.items[i];
    span->piece = (span->end - span->first) / ranks / SHARD_LINE * SHARD_LINE;
    span->state[0] = program->ranks.own_elements;
    program->ranks.own_elements += shard_last(program, span);
  }
}

int64_t shard_last(const struct program *program, const struct span *span) {
  return span->end - span->first - (program->job->parallelism.axes[AXIS_DP_SHARD] - 1) * span->piece;
}

bool shard_adds_up(const struct program *program) {
  return is_sharded(program) && job_reduces_each(program->job) && program->job->accumulation.num_steps > 1;
}

bool shard_arrives_apart(const struct program *program) {
  return shard_adds_up(program) && program->target->ranks.receives_apart;
}

bool shard_sends_otherwise(const struct program *program) {
  return shard_adds_up(program) && program->job->parallelism.axes[AXIS_DP_REPLICATE] > 1;
}

/* Of halves of the pieces, until one is left: what the first rank gives. */
struct collective shard_scattered_by_tree(const struct program *program, const struct span *span, const char *what) {
  int64_t ranks = program->job->parallelism.axes[AXIS_DP_SHARD];
  return (struct collective){.kind = COLLECTIVE_TREE_REDUCE_SCATTER,
                             .axis = AXIS_DP_SHARD,
                             .what = what,
                             .width = dtype_size(DTYPE_FLOAT32),
                             .count = (ranks - 2) * span->piece + shard_last(program, span),
                             .times = 1};
}

struct collective shard_replicated(const struct program *program, const struct span *span,
                                   const struct collective *scattered) {
  return (struct collective){.kind = COLLECTIVE_ALL_REDUCE,
                             .axis = AXIS_DP_REPLICATE,
                             .what = arena_printf(program->arena, "each rank's part of %s", scattered->what),
                             .width = dtype_size(DTYPE_FLOAT32),
                             .count = shard_last(program, span),
                             .times = 1,
                             .chained = true};
}

static struct collective gather_of(const struct program *program, const struct span *span, const char *what,
                                   int64_t times) {
  return (struct collective){.kind = COLLECTIVE_ALL_GATHER,
                             .axis = AXIS_DP_SHARD,
                             .what = arena_printf(program->arena, "%s from %s on", what, span->weight->path),
                             .width = dtype_size(DTYPE_FLOAT32),
                             .first = span->first,
                             .count = span->end - span->first,
                             .times = times};
}

struct collective shard_layer_gather(const struct program *program, const struct span *span) {
  return gather_of(program, span, "weights for a layer,", program->job->accumulation.num_steps);
}

void shard_gather(struct program *program) {
  bool sharded = program->job->parallelism.zero_stage == 3;
  for (int i = 0; i < program->optimizer.spans.count; i++) {
    const struct span *span = &program->optimizer.spans.items[i];
    if (!sharded || span->fsdp_unit < 0)
      ARENA_PUSH(program->arena, program->ranks.collectives, gather_of(program, span, "weights", 1));
  }
}
