#include "gen/plan/ranks/shard.h"

#include "gen/plan/ranks/fsdp_layers.h"
#include "gen/program/flat_ranges.h"
#include "gen/program/optimizers.h"
#include "gen/program/sharding.h"
#include "gen/program/weights.h"

static const struct flat_range *part_of(const struct program *program, const struct weight *weight) {
  return flat_range_of(program, &program->optimizer.parts, weight);
}

/* Whether two weights are as far apart in a tree as their elements are: slots of layers begin again after the last one.
 */
static bool follows(const struct weight_tree *tree, const struct weight *weight, const struct weight *before,
                    int64_t elements) {
  const int64_t bytes = weight_offset(tree, weight->place) - weight_offset(tree, before->place);
  return bytes == elements * dtype_size(DTYPE_FLOAT32);
}

static bool accepts(const struct program *program, const struct flat_range *part) {
  const struct flat_range *last = &program->optimizer.flat_ranges.items[program->optimizer.flat_ranges.count - 1];
  const int64_t elements = part->first - last->first;
  if (part->coded || last->coded) return false;
  if (part->stage != last->stage || fsdp_unit_of(program, part->weight) != last->fsdp_unit) return false;
  if (last->fsdp_unit >= 0 && (!follows(program->weights, part->weight, last->weight, elements) ||
                               !follows(program->gradients, part->weight, last->weight, elements)))
    return false;
  if (part->weight->parameter->placement.form != last->weight->parameter->placement.form) return false;
  return part->first - last->first == part->gradient - last->gradient && same_numbers(&part->numbers, &last->numbers);
}

bool shard_accepts(const struct program *program, const struct weight *weight) {
  return accepts(program, part_of(program, weight));
}

/* A weight with what pads it to the next one. */
static int64_t padded(const struct weight *weight) {
  return (shape_count(weight->parameter->shape) + SHARD_LINE - 1) / SHARD_LINE * SHARD_LINE;
}

static void begin(struct program *program, const struct flat_range *part) {
  struct flat_range range = *part;
  range.end = range.first + padded(part->weight);
  range.fsdp_unit = fsdp_unit_of(program, part->weight);
  ARENA_PUSH(program->arena, program->optimizer.flat_ranges, range);
}

void shard_begin(struct program *program, const struct weight *weight) {
  begin(program, part_of(program, weight));
}

void shard_extend(struct program *program, const struct weight *weight) {
  struct flat_range *last = &program->optimizer.flat_ranges.items[program->optimizer.flat_ranges.count - 1];
  const struct flat_range *part = part_of(program, weight);
  if (part->first < last->first) {
    last->first = part->first;
    last->gradient = part->gradient;
    last->weight = weight;
  } else {
    last->end = part->first + padded(weight);
  }
}

/* Whether several stages of a pipeline use a weight: it is cut alike on all of them, as a flat range of its own. */
static bool is_shared(const struct program *program, const struct weight *weight) {
  return part_of(program, weight)->shared;
}

/* Whether a weight is adjacent to the last flat range, and both together are no more than one message. */
static bool extends_last_range(const struct program *program, const struct flat_range *part) {
  if (program->optimizer.flat_ranges.count == 0) return false;
  const struct flat_range *last = &program->optimizer.flat_ranges.items[program->optimizer.flat_ranges.count - 1];
  int64_t bytes = (last->end - last->first + padded(part->weight)) * dtype_size(DTYPE_FLOAT32);
  if (is_shared(program, part->weight) || is_shared(program, last->weight)) return false;
  return last->end == part->first && bytes <= program->job->parallelism.bucket_bytes && accepts(program, part);
}

static void add_part(struct program *program, const struct flat_range *part) {
  if (extends_last_range(program, part))
    shard_extend(program, part->weight);
  else
    begin(program, part);
}

/* Those of a stage that are of units, or the others. */
static void add_of_stage(struct program *program, int stage, bool of_units) {
  for (int i = 0; i < program->optimizer.parts.count; i++) {
    const struct flat_range *part = &program->optimizer.parts.items[i];
    if (part->stage == stage && (fsdp_unit_of(program, part->weight) >= 0) == of_units) add_part(program, part);
  }
}

void shard_all(struct program *program) {
  const struct flat_range_list *parts = &program->optimizer.parts;
  program->optimizer.flat_ranges = (struct flat_range_list){0};
  for (int i = 0; i < parts->count && program->ranks.pipeline.stages == 0; i++) add_part(program, &parts->items[i]);
  for (int k = 0; k < program->ranks.pipeline.ranks; k++) {
    add_of_stage(program, k, false);
    add_of_stage(program, k, true);
  }
  shard_cut(program);
}

static int64_t rounded(int64_t elements, int64_t unit) {
  return (elements + unit - 1) / unit * unit;
}

/* What ranks divide of a range: of one with states in blocks no padding, so that no rank but the last has a block that
 * ends before its last element. */
static int64_t divided(const struct flat_range *range) {
  return range->coded ? shape_count(range->weight->parameter->shape) : range->end - range->first;
}

/* States in blocks are cut between these. Each rank has as much space for what it may have of a block. */
void shard_cut(struct program *program) {
  int64_t ranks = ranks_along(program, program->mesh.shards), own = 0, states[2] = {0};
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    const int64_t unit = range->coded ? (int)STATE_BLOCK : (int)SHARD_LINE;
    if (i > 0 && range->stage != range[-1].stage) own = states[0] = states[1] = 0;
    range->shard_size = divided(range) / ranks / unit * unit;
    range->state[0] = own;
    range->state[1] = states[range->coded];
    own += shard_last(program, range);
    states[range->coded] += rounded(shard_last(program, range), unit);
    if (own > program->ranks.own_elements) program->ranks.own_elements = own;
  }
}

struct shard_elements shard_elements(const struct program *program, int rank) {
  struct shard_elements own = {0};
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    if (range->stage == rank) *(range->fsdp_unit >= 0 ? &own.units : &own.others) += range->end - range->first;
  }
  return own;
}

/* Of halves of the shards, until one is left: what the first rank gives. */
struct collective shard_scattered_by_tree(const struct program *program, const struct flat_range *range,
                                          const char *what) {
  int64_t ranks = ranks_along(program, program->mesh.shards);
  return (struct collective){.kind = COLLECTIVE_TREE_REDUCE_SCATTER,
                             .axis = program->mesh.shards,
                             .what = what,
                             .width = dtype_size(DTYPE_FLOAT32),
                             .count = (ranks - 2) * range->shard_size + shard_last(program, range),
                             .times = 1};
}

struct collective shard_replicated(const struct program *program, const struct flat_range *range,
                                   const struct collective *scattered, enum axis axis) {
  return (struct collective){.kind = COLLECTIVE_ALL_REDUCE,
                             .axis = axis,
                             .what = arena_printf(program->arena, "each rank's part of %s", scattered->what),
                             .width = dtype_size(DTYPE_FLOAT32),
                             .count = shard_last(program, range),
                             .times = 1,
                             .chained = true};
}

static struct collective gather_of(const struct program *program, const struct flat_range *range, const char *what,
                                   int64_t times) {
  return (struct collective){.kind = COLLECTIVE_ALL_GATHER,
                             .axis = program->mesh.shards,
                             .what = arena_printf(program->arena, "%s from %s on", what, range->weight->path),
                             .width = dtype_size(DTYPE_FLOAT32),
                             .first = range->first,
                             .count = range->end - range->first,
                             .times = times};
}

struct collective shard_layer_gather(const struct program *program, const struct flat_range *range) {
  return gather_of(program, range, "weights for a layer,", program->job->accumulation.num_steps);
}

void shard_gather(struct program *program) {
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    if (!weights_are_split(program) || range->fsdp_unit < 0)
      ARENA_PUSH(program->arena, program->ranks.collectives, gather_of(program, range, "weights", 1));
  }
}
