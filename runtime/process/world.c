#include "runtime/process/world.h"

#include "runtime/process/fail.h"

bool rt_is_main(void) {
  return rt_world()->rank == 0;
}

int64_t rt_mesh_ranks(const struct accel_program *program) {
  int64_t ranks = 1;
  for (int i = 0; i < ACCEL_AXES; i++) ranks *= program->mesh[i] > 0 ? program->mesh[i] : 1;
  return ranks;
}

/* Ranks are numbered with the last axis running fastest. */
int rt_stride_along(const struct accel_program *program, enum accel_axis axis) {
  int stride = 1;
  for (int i = ACCEL_AXES - 1; i > (int)axis; i--) stride *= program->mesh[i] > 0 ? program->mesh[i] : 1;
  return stride;
}

int rt_rank_along(const struct accel_program *program, enum accel_axis axis) {
  int length = program->mesh[axis] > 0 ? program->mesh[axis] : 1;
  return rt_world()->rank / rt_stride_along(program, axis) % length;
}

int64_t rt_data_ranks(const struct accel_program *program) {
  int64_t replicas = program->mesh[ACCEL_DP_REPLICATE], shards = program->mesh[ACCEL_DP_SHARD];
  return (replicas > 0 ? replicas : 1) * (shards > 0 ? shards : 1);
}

void rt_world_require(bool good, const struct problem *problem, int status) {
  const struct world *world = rt_world();
  int64_t first = world->ranks - rt_world_largest(good ? 0 : world->ranks - world->rank);
  if (first == world->ranks) return;
  if (first == world->rank) rt_fail(problem, status);
  rt_world_await_end(status);
}

void rt_fail_together(const struct problem *problem, int status) {
  if (rt_is_main()) rt_fail(problem, status);
  rt_world_await_end(status);
}
