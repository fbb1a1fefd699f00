#include "runtime/mpi/channel.h"

#include "runtime/base/problem.h"
#include "runtime/mpi/shared.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"

#include <limits.h>
#include <stdlib.h>

static MPI_Comm between = MPI_COMM_NULL, here = MPI_COMM_NULL, user = MPI_COMM_NULL;
static MPI_Comm axes[ACCEL_AXES], chained[ACCEL_AXES];

/* MPI's profiling tools show the name. */
static MPI_Comm named(MPI_Comm channel, const char *name) {
  MPI_Comm_set_name(channel, name);
  MPI_Comm_set_errhandler(channel, MPI_ERRORS_RETURN);
  return channel;
}

void rt_channels_open(void) {
  rt_mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &between), "start");
  named(between, "between steps");
  int rank;
  MPI_Comm_rank(between, &rank);
  rt_mpi_check(MPI_Comm_split_type(between, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here), "start");
  named(here, "this machine");
  rt_mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &user), "start");
  named(user, "user code");
  for (int i = 0; i < ACCEL_AXES; i++) axes[i] = chained[i] = MPI_COMM_NULL;
}

/* Ranks that differ along one axis alone are a group of it. */
void rt_channels_divide(const struct accel_program *program) {
  static const char *const names[] = {"dp_replicate", "dp_shard", "cp", "sp", "pp", "tp", "ep"};
  int rank = rt_world()->rank;
  rt_world_wait_at_most(program->timeout);
  for (int i = ACCEL_AXES - 1; i >= 0; i--) {
    if (program->mesh[i] <= 1) continue;
    int along = rt_rank_along(program, (enum accel_axis)i), stride = rt_stride_along(program, (enum accel_axis)i);
    rt_mpi_check(MPI_Comm_split(between, rank - along * stride, along, &axes[i]), "start");
    named(axes[i], names[i]);
    rt_mpi_check(MPI_Comm_dup(axes[i], &chained[i]), "start");
    named(chained[i], names[i]);
  }
}

void rt_channels_close(void) {
  rt_shared_close();
  for (int i = 0; i < ACCEL_AXES; i++) {
    if (axes[i] != MPI_COMM_NULL) MPI_Comm_free(&axes[i]);
    if (chained[i] != MPI_COMM_NULL) MPI_Comm_free(&chained[i]);
  }
  MPI_Comm_free(&here);
  MPI_Comm_free(&user);
  MPI_Comm_free(&between);
}

MPI_Comm rt_channel_between(void) {
  return between;
}

MPI_Comm rt_channel_here(void) {
  return here;
}

MPI_Comm rt_channel_user(void) {
  return user;
}

int *rt_shard_counts(int *counts, int ranks, size_t shard_size, size_t last) {
  struct problem problem;
  if (counts == NULL) counts = malloc(2 * (size_t)rt_world()->ranks * sizeof *counts);
  rt_problem(&problem, "no memory to count the shards of %d ranks", ranks);
  if (counts == NULL) rt_fail(&problem, 1);
  rt_problem(&problem, "%zu elements in one collective are more than MPI counts", shard_size * (size_t)ranks + last);
  if (shard_size * (size_t)ranks + last > INT_MAX) rt_fail(&problem, 1);
  for (int i = 0; i < ranks; i++) {
    counts[i] = (int)(i + 1 < ranks ? shard_size : last);
    counts[ranks + i] = i * (int)shard_size;
  }
  return counts;
}

MPI_Comm rt_channel_along(enum accel_axis axis) {
  return axes[axis];
}

MPI_Comm rt_channel_chained(enum accel_axis axis) {
  return chained[axis];
}
