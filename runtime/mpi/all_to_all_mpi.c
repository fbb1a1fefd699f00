/* The exchange of parts over MPI. */
#include "include/accel/collectives.h"

#include "runtime/base/problem.h"
#include "runtime/mpi/channel.h"
#include "runtime/mpi/waiting.h"
#include "runtime/process/fail.h"

#include <limits.h>

void accel_all_to_all(enum accel_axis axis, const void *x, void *y, size_t bytes) {
  static const char what[] = "the exchange of activations";
  struct problem problem;
  MPI_Request request;
  if (bytes > INT_MAX) {
    rt_problem(&problem, "%zu bytes in one collective are more than MPI counts", bytes);
    rt_fail(&problem, 1);
  }
  rt_mpi_check(MPI_Ialltoall(x, (int)bytes, MPI_BYTE, y, (int)bytes, MPI_BYTE, rt_channel_along(axis), &request), what);
  rt_mpi_wait(&request, what);
}
