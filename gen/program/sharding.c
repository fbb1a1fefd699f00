#include "gen/program/sharding.h"

#include "gen/program/optimizers.h"
#include "gen/program/target.h"

bool is_sharded(const struct program *program) {
  return program->mesh.shards != AXES;
}

bool shard_has_own_gradients(const struct program *program) {
  return is_sharded(program) && (!job_has_tree(program->job) || program->job->accumulation.num_steps == 1);
}

int64_t shard_last(const struct program *program, const struct flat_range *range) {
  return range->end - range->first - (ranks_along(program, program->mesh.shards) - 1) * range->shard_size;
}

int64_t shard_of_state(const struct program *program, const struct state *state, const struct flat_range *range,
                       int64_t *first) {
  const int64_t last = shard_last(program, range), block = state->ranges == RANGES_BLOCKS ? STATE_BLOCK : 1;
  *first = state->ranges == RANGES_ALL ? range->state[0] : range->state[1] / block;
  if (state->ranges != RANGES_ALL && range->coded != (state->ranges != RANGES_OTHERS)) return 0;
  return (last + block - 1) / block;
}

bool shard_adds_up(const struct program *program) {
  return gradients_are_split(program) && program->job->accumulation.num_steps > 1;
}

bool shard_needs_receive_buffer(const struct program *program) {
  return shard_adds_up(program) && program->target->ranks.receives_separately;
}

bool shard_sends_otherwise(const struct program *program) {
  return shard_adds_up(program) && program->mesh.batches.count > 1 && program->ranks.pipeline.stages == 0;
}

bool weights_are_split(const struct program *program) {
  return program->mesh.axes[program->mesh.shards].weights == PLACED_SPLIT;
}

bool weights_come(const struct program *program) {
  return program->streams || weights_are_split(program);
}

bool gradients_are_split(const struct program *program) {
  const bool adds_first = job_has_tree(program->job) && program->job->accumulation.num_steps > 1;
  return program->mesh.axes[program->mesh.shards].gradients == PLACED_SPLIT && !adds_first;
}

bool evaluation_gathers_averages(const struct program *program) {
  const bool averages =
      program->job->training.ema.evaluate || (job_optimizer(program->job)->averages && job_evaluates(program->job));
  return program->kind == PROGRAM_TRAIN && averages && is_sharded(program);
}

bool gradients_add_up(const struct program *program) {
  const bool deferred =
      program->ranks.pipeline.stages > 0; /* each stage sends what all of its micro-batches added up to */
  return job_accumulates(program->job) && (!gradients_are_split(program) || deferred);
}
