/* Sums in the order of a tree over NCCL: ranks are sent shards, and the program adds them up. A file of its own, as
 * programs without such sums define no accel_add_shards. */
#include "include/accel/gpu/collectives.h"
#include "runtime/nccl/seat.h"

/* What a rank has of shards. */
static size_t own_count(const struct seat *seat, size_t shard_size, size_t last) {
  return seat->index + 1 == seat->ranks ? last : shard_size;
}

/* Each rank's shard of the values of all, that of rank r at shards[r * last]. */
static void exchange(const struct seat *seat, const float *values, float *shards, size_t shard_size, size_t last) {
  size_t own = own_count(seat, shard_size, last);
  RT_NCCL(ncclGroupStart());
  for (int r = 0; r < seat->ranks; r++) {
    size_t other = r + 1 == seat->ranks ? last : shard_size;
    RT_NCCL(ncclSend(values + (size_t)r * shard_size, other, ncclFloat32, r, seat->comm, seat->stream));
    RT_NCCL(ncclRecv(shards + (size_t)r * last, own, ncclFloat32, r, seat->comm, seat->stream));
  }
  RT_NCCL(ncclGroupEnd());
}

void accel_start_all_reduce_by_tree(enum accel_axis axis, float *values, size_t count, float *workspace) {
  const struct seat seat = rt_nccl_seat_along(axis, rt_nccl_begin());
  size_t shard_size = count / (size_t)seat.ranks, last = count - shard_size * (size_t)(seat.ranks - 1);
  exchange(&seat, values, workspace, shard_size, last);
  accel_add_shards(axis, workspace, workspace, own_count(&seat, shard_size, last), last);
  rt_nccl_gather(&seat, workspace, values, shard_size, last);
  rt_nccl_record_sum();
}

void accel_start_reduce_scatter_by_tree(enum accel_axis axis, float *values, float *own, size_t shard_size, size_t last,
                                        float *workspace) {
  const struct seat seat = rt_nccl_seat_along(axis, rt_nccl_begin());
  exchange(&seat, values, workspace, shard_size, last);
  accel_add_shards(axis, own, workspace, own_count(&seat, shard_size, last), last);
  rt_nccl_record_sum();
}
