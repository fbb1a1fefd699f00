/* One process alone. */
#include "runtime/process/world.h"

#include "include/accel/collectives.h"

#include <stdlib.h>
#include <string.h>

const char *rt_world_engine(void) {
  return "nothing";
}

void rt_world_join(void) {}

const struct world *rt_world(void) {
  static const struct world alone = {0, 1, 0, 1};
  return &alone;
}

bool rt_world_divide(const struct accel_program *program, struct problem *problem) {
  int64_t ranks = rt_mesh_ranks(program);
  if (ranks == 1) return true;
  rt_problem(problem, "this program is for several ranks, but was linked for one process");
  return rt_help(problem, "build it with accel-gen build, or link it with pkg-config --libs accel-runtime-mpi");
}

void rt_world_open_arena(void *arena, size_t bytes, const struct arena_parts *parts) {
  (void)arena, (void)bytes, (void)parts;
}

bool rt_world_take_processors(bool bind, struct processors *taken, struct problem *problem) {
  (void)bind, (void)problem;
  *taken = (struct processors){0};
  return true;
}

void rt_world_broadcast(void *bytes, size_t size) {
  (void)bytes, (void)size;
}

int64_t rt_world_largest(int64_t value) {
  return value;
}

void rt_world_gather(const void *own, void *all, size_t size) {
  memcpy(all, own, size);
}

void rt_world_bring(int from, const void *own, void *there, size_t size) {
  (void)from;
  memcpy(there, own, size);
}

void rt_world_wait_at_most(int seconds) {
  (void)seconds;
}

void rt_user_gather(const void *own, void *all, size_t size, const char *what) {
  (void)what;
  memcpy(all, own, size);
}

void rt_user_broadcast(void *bytes, size_t size, int from, const char *what) {
  (void)bytes, (void)size, (void)from, (void)what;
}

void rt_world_leave(void) {}

void rt_world_end(int status) {
  exit(status);
}

void rt_world_await_end(int status) {
  exit(status);
}

/* ---- Collectives of one rank ---- */

void accel_all_reduce(enum accel_axis axis, float *values, size_t count) {
  (void)axis, (void)values, (void)count;
}

void accel_broadcast_values(enum accel_axis axis, float *values, size_t count) {
  (void)axis, (void)values, (void)count;
}

void accel_all_reduce_by_tree(enum accel_axis axis, float *values, size_t count, float *workspace) {
  (void)axis, (void)values, (void)count, (void)workspace;
}

void accel_all_reduce_doubles_by_tree(enum accel_axis axis, double *values, size_t count) {
  (void)axis, (void)values, (void)count;
}

void accel_start_all_reduce(enum accel_axis axis, float *values, size_t count) {
  (void)axis, (void)values, (void)count;
}

void accel_start_all_reduce_as(enum accel_axis axis, enum accel_dtype dtype, float *values, uint16_t *wire,
                               size_t count) {
  (void)axis, (void)dtype, (void)values, (void)wire, (void)count;
}

void accel_start_reduce_scatter(enum accel_axis axis, const float *values, float *own, size_t shard_size, size_t last) {
  (void)axis, (void)shard_size;
  memcpy(own, values, last * sizeof *own);
}

void accel_start_all_gather(enum accel_axis axis, float *values, size_t shard_size, size_t last) {
  (void)axis, (void)values, (void)shard_size, (void)last;
}

void accel_start_reduce_scatter_onto(enum accel_axis axis, const float *values, float *own, float *arriving,
                                     size_t shard_size, size_t last) {
  (void)axis, (void)arriving, (void)shard_size;
  for (size_t i = 0; i < last; i++) own[i] += values[i];
}

void accel_start_all_gather_from(enum accel_axis axis, const float *own, float *values, size_t shard_size,
                                 size_t last) {
  (void)axis, (void)shard_size;
  memcpy(values, own, last * sizeof *own);
}

void accel_wait_reductions(size_t count) {
  (void)count;
}

void accel_wait_gathers(void) {}

void accel_all_reduce_largest(enum accel_axis axis, double *values, size_t count) {
  (void)axis, (void)values, (void)count;
}

void accel_advance_collectives(void) {}

void accel_wait_collectives(void) {}

void accel_all_reduce_doubles(enum accel_axis axis, double *values, size_t count) {
  (void)axis, (void)values, (void)count;
}

void accel_all_reduce_counts(enum accel_axis axis, int64_t *values, size_t count) {
  (void)axis, (void)values, (void)count;
}
