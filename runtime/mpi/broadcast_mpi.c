/* What one rank has goes to all along an axis, over MPI. */
#include "include/accel/collectives.h"
#include "runtime/mpi/channel.h"

void accel_broadcast_values(enum accel_axis axis, float *values, size_t count) {
  static const char what[] = "a broadcast from the first rank";
  enum { MOST_AT_ONCE = 1 << 28 }; /* MPI counts in int */
  for (size_t at = 0; at < count; at += MOST_AT_ONCE) {
    MPI_Request request;
    int n = count - at < MOST_AT_ONCE ? (int)(count - at) : MOST_AT_ONCE;
    rt_mpi_check(MPI_Ibcast(values + at, n, MPI_FLOAT, 0, rt_channel_along(axis), &request), what);
    rt_mpi_wait(&request, what);
  }
}
