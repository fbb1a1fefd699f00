/* What goes round the ranks along an axis, over MPI. */
#include "include/accel/collectives.h"

#include "runtime/mpi/channel.h"

enum { MOST_AT_ONCE = 1 << 28 }; /* MPI counts in int */

void accel_send_receive(enum accel_axis axis, int to, const void *x, int from, void *y, size_t bytes) {
  static const char what[] = "what another rank along a ring gives";
  MPI_Comm channel = rt_channel_along(axis);
  int ranks, own;
  MPI_Comm_size(channel, &ranks);
  MPI_Comm_rank(channel, &own);
  const int taker = ((own + to) % ranks + ranks) % ranks, giver = ((own + from) % ranks + ranks) % ranks;
  for (size_t at = 0; at < bytes; at += MOST_AT_ONCE) {
    const int n = bytes - at < MOST_AT_ONCE ? (int)(bytes - at) : MOST_AT_ONCE;
    MPI_Request sent, received;
    rt_mpi_check(MPI_Irecv((char *)y + at, n, MPI_BYTE, giver, 0, channel, &received), what);
    rt_mpi_check(MPI_Isend((const char *)x + at, n, MPI_BYTE, taker, 0, channel, &sent), what);
    rt_mpi_wait(&received, what);
    rt_mpi_wait(&sent, what);
  }
}
