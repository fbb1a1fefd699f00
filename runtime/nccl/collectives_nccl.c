/* Collectives over NCCL, in the traffic stream. */
#include "runtime/cuda/collectives.h"
#include "runtime/cuda/state.h"
#include "runtime/nccl/groups.h"
#include "runtime/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- In streams ---- */

static cudaEvent_t fork_event, join_event;
static bool has_begun; /* something in the traffic stream is not waited for yet */

void rt_nccl_open_order(void) {
  RT_CUDA(cudaEventCreateWithFlags(&fork_event, cudaEventDisableTiming));
  RT_CUDA(cudaEventCreateWithFlags(&join_event, cudaEventDisableTiming));
}

void rt_nccl_close_order(void) {
  RT_CUDA(cudaEventDestroy(fork_event));
  RT_CUDA(cudaEventDestroy(join_event));
}

/* The traffic stream, behind all that the compute stream holds by now. */
static accel_stream traffic(void) {
  accel_stream stream = accel_cuda_stream(ACCEL_TRAFFIC);
  RT_CUDA(cudaEventRecord(fork_event, accel_cuda_stream(ACCEL_COMPUTE)));
  RT_CUDA(cudaStreamWaitEvent(stream, fork_event, 0));
  has_begun = true;
  return stream;
}

void accel_wait_collectives(void) {
  if (!has_begun) return;
  RT_CUDA(cudaEventRecord(join_event, accel_cuda_stream(ACCEL_TRAFFIC)));
  RT_CUDA(cudaStreamWaitEvent(accel_cuda_stream(ACCEL_COMPUTE), join_event, 0));
  has_begun = false;
}

/* One stream carries all that has begun, in its order. */
void accel_wait_reductions(size_t count) {
  if (count > 0) accel_wait_collectives();
}

void accel_wait_gathers(void) {
  accel_wait_collectives();
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
  RT_NCCL(ncclAllReduce(values, values, count, type, ncclSum, rt_nccl_along(axis), traffic()));
}

void accel_cuda_start_all_reduce(enum accel_axis axis, enum accel_dtype dtype, void *values, size_t count) {
  start(axis, type_of(dtype), values, count);
}

void accel_cuda_start_all_reduce_doubles(enum accel_axis axis, double *values, size_t count) {
  start(axis, ncclFloat64, values, count);
}

void accel_start_all_reduce(enum accel_axis axis, float *values, size_t count) {
  start(axis, ncclFloat32, values, count);
}

void accel_all_reduce(enum accel_axis axis, float *values, size_t count) {
  start(axis, ncclFloat32, values, count);
  accel_wait_collectives();
}

void accel_cuda_start_reduce_scatter(enum accel_axis axis, enum accel_dtype dtype, const void *values, void *own,
                                     size_t count) {
  RT_NCCL(ncclReduceScatter(values, own, count, type_of(dtype), ncclSum, rt_nccl_along(axis), traffic()));
}

void accel_cuda_start_all_gather(enum accel_axis axis, enum accel_dtype dtype, const void *own, void *all,
                                 size_t count) {
  RT_NCCL(ncclAllGather(own, all, count, type_of(dtype), rt_nccl_along(axis), traffic()));
}

/* Pieces of one length are one call of NCCL's; where the last is shorter, each is a call of its own. */
void accel_start_reduce_scatter(enum accel_axis axis, const float *values, float *own, size_t piece, size_t last) {
  ncclComm_t comm = rt_nccl_along(axis);
  int ranks;
  RT_NCCL(ncclCommCount(comm, &ranks));
  if (piece == last) {
    RT_NCCL(ncclReduceScatter(values, own, piece, ncclFloat32, ncclSum, comm, traffic()));
    return;
  }
  accel_stream stream = traffic();
  RT_NCCL(ncclGroupStart());
  for (int r = 0; r < ranks; r++)
    RT_NCCL(ncclReduce(values + (size_t)r * piece, own, r + 1 < ranks ? piece : last, ncclFloat32, ncclSum, r, comm,
                       stream));
  RT_NCCL(ncclGroupEnd());
}

void accel_start_all_gather_from(enum accel_axis axis, const float *own, float *values, size_t piece, size_t last) {
  ncclComm_t comm = rt_nccl_along(axis);
  int ranks, place;
  RT_NCCL(ncclCommCount(comm, &ranks));
  RT_NCCL(ncclCommUserRank(comm, &place));
  accel_stream stream = traffic();
  if (piece == last) {
    RT_NCCL(ncclAllGather(own, values, piece, ncclFloat32, comm, stream));
    return;
  }
  RT_NCCL(ncclGroupStart());
  for (int r = 0; r < ranks; r++) {
    float *at = values + (size_t)r * piece;
    RT_NCCL(ncclBroadcast(r == place ? own : at, at, r + 1 < ranks ? piece : last, ncclFloat32, r, comm, stream));
  }
  RT_NCCL(ncclGroupEnd());
}

void accel_start_all_gather(enum accel_axis axis, float *values, size_t piece, size_t last) {
  int place;
  RT_NCCL(ncclCommUserRank(rt_nccl_along(axis), &place));
  accel_start_all_gather_from(axis, values + (size_t)place * piece, values, piece, last);
}

/* ---- Values of the host, between steps ---- */

/* The values of all ranks, one behind the other; the caller frees them. */
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
    for (size_t i = 0; i < count && rt_nccl_is_beside(axis, r); i++) values[i] += all[(size_t)r * count + i];
  free(all);
}

void accel_all_reduce_largest(enum accel_axis axis, double *values, size_t count) {
  double *all = gathered(values, count * sizeof *all);
  for (int r = 0; r < rt_world()->ranks; r++)
    for (size_t i = 0; i < count && rt_nccl_is_beside(axis, r); i++) {
      double other = all[(size_t)r * count + i];
      if (other > values[i] || isnan(other)) values[i] = other;
    }
  free(all);
}

void accel_all_reduce_counts(enum accel_axis axis, int64_t *values, size_t count) {
  int64_t *all = gathered(values, count * sizeof *all);
  memset(values, 0, count * sizeof *values);
  for (int r = 0; r < rt_world()->ranks; r++)
    for (size_t i = 0; i < count && rt_nccl_is_beside(axis, r); i++) values[i] += all[(size_t)r * count + i];
  free(all);
}
