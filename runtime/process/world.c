#include "runtime/process/world.h"

#include "runtime/process/fail.h"

#include <omp.h>

bool rt_is_main(void) {
  return rt_world()->rank == 0;
}

bool rt_writes_files(const struct accel_program *program) {
  return rt_is_main() || (program->checkpoint.each_node && rt_world()->local_rank == 0);
}

int rt_length_along(const struct accel_program *program, enum accel_axis axis) {
  return program->mesh[axis] > 0 ? program->mesh[axis] : 1;
}

/* Ranks along cp and sp are counted along an axis before these. */
static int64_t ranks_after(const struct accel_program *program, int axis) {
  int64_t ranks = 1;
  for (int i = axis + 1; i < ACCEL_AXES; i++)
    if (axis >= ACCEL_CP || (i != ACCEL_CP && i != ACCEL_SP)) ranks *= rt_length_along(program, (enum accel_axis)i);
  return ranks;
}

int64_t rt_mesh_ranks(const struct accel_program *program) {
  return ranks_after(program, -1);
}

int rt_stride_along(const struct accel_program *program, enum accel_axis axis) {
  return (int)ranks_after(program, (int)axis);
}

int rt_rank_along(const struct accel_program *program, enum accel_axis axis) {
  return rt_world()->rank / rt_stride_along(program, axis) % rt_length_along(program, axis);
}

int64_t rt_data_ranks(const struct accel_program *program) {
  int64_t ranks = (int64_t)rt_length_along(program, ACCEL_DP_REPLICATE) * rt_length_along(program, ACCEL_DP_SHARD);
  ranks *= rt_length_along(program, ACCEL_EP);
  return ranks / rt_length_along(program, ACCEL_CP) / rt_length_along(program, ACCEL_SP);
}

int64_t rt_data_batches(const struct accel_program *program) {
  return rt_data_ranks(program) * (program->devices > 0 ? program->devices : 1);
}

int64_t rt_data_rank(const struct accel_program *program) {
  int64_t rank = rt_rank_along(program, ACCEL_DP_REPLICATE);
  rank = rank * rt_length_along(program, ACCEL_DP_SHARD) + rt_rank_along(program, ACCEL_DP_SHARD);
  rank /= (int64_t)rt_length_along(program, ACCEL_CP) * rt_length_along(program, ACCEL_SP);
  return rank * rt_length_along(program, ACCEL_EP) + rt_rank_along(program, ACCEL_EP);
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

const char *rt_world_set_threads(const struct accel_program *program) {
  static struct processors own;
  struct problem problem;
  bool chosen = omp_get_max_threads() != omp_get_num_procs();
  bool good = rt_world_take_processors(program->numa_affinity, &own, &problem);
  rt_world_require(good, &problem, 1);
  if (program->threads > 0)
    omp_set_num_threads(program->threads);
  else if (own.cores > 0 && !chosen)
    omp_set_num_threads(own.cores);
  return own.machine;
}
