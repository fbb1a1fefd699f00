#include "gen/program/sharding.h"

#include "gen/program/target.h"

bool is_sharded(const struct program *program) {
  return program->kind == PROGRAM_TRAIN && program->job->parallelism.axes[AXIS_DP_SHARD] > 1;
}

bool shard_has_own_gradients(const struct program *program) {
  return is_sharded(program) && (!job_has_tree(program->job) || program->job->accumulation.num_steps == 1);
}

int64_t shard_last(const struct program *program, const struct flat_range *range) {
  return range->end - range->first - (program->job->parallelism.axes[AXIS_DP_SHARD] - 1) * range->shard_size;
}

bool shard_adds_up(const struct program *program) {
  return is_sharded(program) && job_reduces_each(program->job) && program->job->accumulation.num_steps > 1;
}

bool shard_arrives_apart(const struct program *program) {
  return shard_adds_up(program) && program->target->ranks.receives_apart;
}

enum axis shard_next_axis(const struct program *program) {
  const int64_t *axes = program->job->parallelism.axes;
  if (!is_sharded(program)) return AXES;
  return axes[AXIS_DP_REPLICATE] > 1 ? AXIS_DP_REPLICATE : axes[AXIS_EP] > 1 ? AXIS_EP : AXES;
}

bool shard_is_summed_twice(const struct program *program, const struct flat_range *range) {
  const enum axis axis = shard_next_axis(program);
  return axis != AXES && (axis != AXIS_EP || range->weight->parameter->placement.form != PLACED_DEALT);
}

bool shard_sends_otherwise(const struct program *program) {
  return shard_adds_up(program) && shard_next_axis(program) != AXES;
}
