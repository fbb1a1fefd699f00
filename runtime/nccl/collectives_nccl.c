/* Collectives over NCCL, in the traffic stream. */
#include "include/accel/gpu/collectives.h"
#include "runtime/gpu/state.h"
#include "runtime/nccl/groups.h"
#include "runtime/nccl/seat.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- In streams ---- */

/* One stream carries all collectives in flight, in their order, so that who waits for one waits for those before it.
 * What is gathered, and sums that are waited for one by one, have events of their own: what was started after them
 * continues. */
static struct {
  cudaEvent_t fork, join, gathered;
  cudaEvent_t *summed; /* of the first sums since all were waited for */
  size_t n_summed;
  size_t sums;  /* started since then */
  bool gathers; /* some are not waited for */
} order;

static cudaEvent_t event(void) {
  cudaEvent_t made;
  RT_CUDA(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  return made;
}

void rt_nccl_open_order(size_t sums) {
  order.fork = event();
  order.join = event();
  order.gathered = event();
  order.summed = calloc(sums + 1, sizeof *order.summed);
  if (order.summed == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for %zu events", sums);
    rt_fail(&problem, 1);
  }
  order.n_summed = sums;
  for (size_t i = 0; i < sums; i++) order.summed[i] = event();
}

void rt_nccl_close_order(void) {
  RT_CUDA(cudaEventDestroy(order.fork));
  RT_CUDA(cudaEventDestroy(order.join));
  RT_CUDA(cudaEventDestroy(order.gathered));
  for (size_t i = 0; i < order.n_summed; i++) RT_CUDA(cudaEventDestroy(order.summed[i]));
  free(order.summed);
  memset(&order, 0, sizeof order);
}

accel_stream rt_nccl_begin(void) {
  accel_stream stream = accel_gpu_stream(ACCEL_TRAFFIC);
  RT_CUDA(cudaEventRecord(order.fork, accel_gpu_stream(ACCEL_COMPUTE)));
  RT_CUDA(cudaStreamWaitEvent(stream, order.fork, 0));
  rt_cuda_after_prefetch(stream);
  return stream;
}

void rt_nccl_record_sum(void) {
  if (order.sums < order.n_summed) RT_CUDA(cudaEventRecord(order.summed[order.sums], accel_gpu_stream(ACCEL_TRAFFIC)));
  order.sums++;
}

/* Records the event after which the gather that was started last has ended. */
static void record_gather(void) {
  RT_CUDA(cudaEventRecord(order.gathered, accel_gpu_stream(ACCEL_TRAFFIC)));
  order.gathers = true;
}

static void wait_for(cudaEvent_t event) {
  RT_CUDA(cudaStreamWaitEvent(accel_gpu_stream(ACCEL_COMPUTE), event, 0));
}

void rt_nccl_wait(void) {
  RT_CUDA(cudaEventRecord(order.join, accel_gpu_stream(ACCEL_TRAFFIC)));
  wait_for(order.join);
}

void accel_wait_collectives(void) {
  if (order.sums == 0 && !order.gathers) return;
  rt_nccl_wait();
  order.sums = 0;
  order.gathers = false;
}

void accel_wait_reductions(size_t count) {
  size_t started = count < order.sums ? count : order.sums;
  if (started > order.n_summed)
    accel_wait_collectives();
  else if (started > 0)
    wait_for(order.summed[started - 1]);
}

void accel_wait_gathers(void) {
  if (order.gathers) wait_for(order.gathered);
  order.gathers = false;
}

void accel_advance_collectives(void) {}

/* ---- What ranks do together ---- */

static ncclDataType_t type_of(enum accel_dtype dtype) {
  static const ncclDataType_t types[] = {
      [ACCEL_FLOAT32] = ncclFloat32, [ACCEL_FLOAT16] = ncclFloat16, [ACCEL_BFLOAT16] = ncclBfloat16,
      [ACCEL_INT32] = ncclInt32,     [ACCEL_INT64] = ncclInt64,     [ACCEL_UINT8] = ncclUint8};
  return types[dtype];
}

static void start(enum accel_axis axis, ncclDataType_t type, void *values, size_t count) {
  RT_NCCL(ncclAllReduce(values, values, count, type, ncclSum, rt_nccl_along(axis), rt_nccl_begin()));
  rt_nccl_record_sum();
}

void accel_gpu_start_all_reduce(enum accel_axis axis, enum accel_dtype dtype, void *values, size_t count) {
  start(axis, type_of(dtype), values, count);
}

void accel_gpu_start_all_reduce_doubles(enum accel_axis axis, double *values, size_t count) {
  start(axis, ncclFloat64, values, count);
}

void accel_gpu_all_reduce_doubles(enum accel_axis axis, double *values, size_t count) {
  RT_NCCL(ncclAllReduce(values, values, count, ncclFloat64, ncclSum, rt_nccl_along(axis), rt_nccl_begin()));
  rt_nccl_wait();
}

void accel_start_all_reduce(enum accel_axis axis, float *values, size_t count) {
  start(axis, ncclFloat32, values, count);
}

/* In the stream, it starts after what was started before. */
void accel_start_all_reduce_chained(enum accel_axis axis, float *values, size_t count) {
  RT_NCCL(
      ncclAllReduce(values, values, count, ncclFloat32, ncclSum, rt_nccl_along(axis), accel_gpu_stream(ACCEL_TRAFFIC)));
}

void accel_all_reduce(enum accel_axis axis, float *values, size_t count) {
  start(axis, ncclFloat32, values, count);
  accel_wait_collectives();
}

/* The bits of numbers without a sign have their order, as integers, and those of a NaN are the largest. */
void accel_gpu_start_all_reduce_largest(enum accel_axis axis, double *values, size_t count) {
  static_assert(sizeof(double) == sizeof(int64_t), "bits of one are those of the other");
  RT_NCCL(ncclAllReduce(values, values, count, ncclInt64, ncclMax, rt_nccl_along(axis), rt_nccl_begin()));
  rt_nccl_record_sum();
}

void accel_broadcast_values(enum accel_axis axis, float *values, size_t count) {
  RT_NCCL(ncclBroadcast(values, values, count, ncclFloat32, 0, rt_nccl_along(axis), rt_nccl_begin()));
  record_gather();
  accel_wait_gathers();
}

void accel_gpu_start_reduce_scatter(enum accel_axis axis, enum accel_dtype dtype, const void *values, void *own,
                                    size_t count) {
  RT_NCCL(ncclReduceScatter(values, own, count, type_of(dtype), ncclSum, rt_nccl_along(axis), rt_nccl_begin()));
  rt_nccl_record_sum();
}

void accel_gpu_start_all_gather(enum accel_axis axis, enum accel_dtype dtype, const void *own, void *all,
                                size_t count) {
  RT_NCCL(ncclAllGather(own, all, count, type_of(dtype), rt_nccl_along(axis), rt_nccl_begin()));
  record_gather();
}

/* Equal shards are one call, what the last one has more is another. */
void accel_start_reduce_scatter(enum accel_axis axis, const float *values, float *own, size_t shard_size, size_t last) {
  ncclComm_t comm = rt_nccl_along(axis);
  accel_stream stream = rt_nccl_begin();
  int ranks;
  RT_NCCL(ncclCommCount(comm, &ranks));
  const float *rest = values + (size_t)ranks * shard_size;
  if (shard_size > 0) RT_NCCL(ncclReduceScatter(values, own, shard_size, ncclFloat32, ncclSum, comm, stream));
  if (last > shard_size)
    RT_NCCL(ncclReduce(rest, own + shard_size, last - shard_size, ncclFloat32, ncclSum, ranks - 1, comm, stream));
  rt_nccl_record_sum();
}

struct seat rt_nccl_seat_along(enum accel_axis axis, accel_stream stream) {
  struct seat seat = {.comm = rt_nccl_along(axis), .stream = stream};
  RT_NCCL(ncclCommCount(seat.comm, &seat.ranks));
  RT_NCCL(ncclCommUserRank(seat.comm, &seat.index));
  return seat;
}

/* Shards of one length are one call of NCCL's; what the last one has more is another. */
void rt_nccl_gather(const struct seat *seat, const float *own, float *values, size_t shard_size, size_t last) {
  float *rest = values + (size_t)seat->ranks * shard_size;
  if (shard_size > 0) RT_NCCL(ncclAllGather(own, values, shard_size, ncclFloat32, seat->comm, seat->stream));
  if (last > shard_size) {
    const float *from = seat->index + 1 == seat->ranks ? own + shard_size : rest;
    RT_NCCL(ncclBroadcast(from, rest, last - shard_size, ncclFloat32, seat->ranks - 1, seat->comm, seat->stream));
  }
}

void accel_start_all_gather_from(enum accel_axis axis, const float *own, float *values, size_t shard_size,
                                 size_t last) {
  const struct seat seat = rt_nccl_seat_along(axis, rt_nccl_begin());
  rt_nccl_gather(&seat, own, values, shard_size, last);
  record_gather();
}

void accel_start_all_gather(enum accel_axis axis, float *values, size_t shard_size, size_t last) {
  int index;
  RT_NCCL(ncclCommUserRank(rt_nccl_along(axis), &index));
  accel_start_all_gather_from(axis, values + (size_t)index * shard_size, values, shard_size, last);
}

/* ---- Values of the host, between steps ---- */

/* The values of all ranks, one after the other; the caller frees them. */
static void *gathered(const void *values, size_t bytes) {
  void *all = malloc(bytes * (size_t)rt_world()->ranks);
  if (all == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for the values of %d ranks", rt_world()->ranks);
    rt_fail(&problem, 1);
  }
  rt_world_gather(values, all, bytes);
  return all;
}

void accel_all_reduce_doubles(enum accel_axis axis, double *values, size_t count) {
  double *all = gathered(values, count * sizeof *all);
  memset(values, 0, count * sizeof *values);
  for (int r = 0; r < rt_world()->ranks; r++)
    for (size_t i = 0; i < count && rt_nccl_is_in_group(axis, r); i++) values[i] += all[(size_t)r * count + i];
  free(all);
}

void accel_all_reduce_doubles_by_tree(enum accel_axis axis, double *values, size_t count) {
  double *all = gathered(values, count * sizeof *all);
  size_t ranks = 0;
  for (int r = 0; r < rt_world()->ranks; r++)
    if (rt_nccl_is_in_group(axis, r)) memmove(all + ranks++ * count, all + (size_t)r * count, count * sizeof *all);
  for (size_t half = ranks / 2 * count; half >= count; half /= 2)
    for (size_t i = 0; i < half; i++) all[i] += all[half + i];
  memcpy(values, all, count * sizeof *values);
  free(all);
}

void accel_all_reduce_largest(enum accel_axis axis, double *values, size_t count) {
  double *all = gathered(values, count * sizeof *all);
  for (int r = 0; r < rt_world()->ranks; r++)
    for (size_t i = 0; i < count && rt_nccl_is_in_group(axis, r); i++) {
      double other = all[(size_t)r * count + i];
      if (other > values[i] || isnan(other)) values[i] = other;
    }
  free(all);
}

void accel_all_reduce_counts(enum accel_axis axis, int64_t *values, size_t count) {
  int64_t *all = gathered(values, count * sizeof *all);
  memset(values, 0, count * sizeof *values);
  for (int r = 0; r < rt_world()->ranks; r++)
    for (size_t i = 0; i < count && rt_nccl_is_in_group(axis, r); i++) values[i] += all[(size_t)r * count + i];
  free(all);
}
