/* What goes round the ranks along an axis, over NCCL, in the traffic stream; the compute stream waits for it. */
#include "include/accel/gpu/collectives.h"
#include "runtime/gpu/state.h"
#include "runtime/nccl/groups.h"

void accel_send_receive(enum accel_axis axis, int to, const void *x, int from, void *y, size_t bytes) {
  const ncclComm_t comm = rt_nccl_along(axis);
  const accel_stream stream = rt_nccl_begin();
  int ranks, own;
  RT_NCCL(ncclCommCount(comm, &ranks));
  RT_NCCL(ncclCommUserRank(comm, &own));
  const int taker = ((own + to) % ranks + ranks) % ranks, giver = ((own + from) % ranks + ranks) % ranks;
  RT_NCCL(ncclGroupStart());
  RT_NCCL(ncclSend(x, bytes, ncclUint8, taker, comm, stream));
  RT_NCCL(ncclRecv(y, bytes, ncclUint8, giver, comm, stream));
  RT_NCCL(ncclGroupEnd());
  rt_nccl_wait();
}
