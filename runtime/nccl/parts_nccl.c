/* Collectives over NCCL between kernels of a model: of tensors of which ranks have parts or partial sums. Each is in
 * the traffic stream, and the compute stream waits for it. */
#include "include/accel/gpu/collectives.h"
#include "runtime/gpu/state.h"
#include "runtime/nccl/groups.h"

/* ---- Sums ---- */

static void all_reduce(enum accel_axis axis, ncclDataType_t type, const void *x, void *y, size_t count) {
  RT_NCCL(ncclAllReduce(x, y, count, type, ncclSum, rt_nccl_along(axis), rt_nccl_begin()));
  rt_nccl_wait();
}

void accel_all_reduce_from(enum accel_axis axis, const float *x, float *y, size_t count) {
  all_reduce(axis, ncclFloat32, x, y, count);
}

void accel_all_reduce_bfloat16_from(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t count) {
  all_reduce(axis, ncclBfloat16, x, y, count);
}

void accel_all_reduce_float16_from(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t count) {
  all_reduce(axis, ncclFloat16, x, y, count);
}

/* ---- Parts ---- */

/* Elements of `size` bytes. Blocks are one launch of NCCL's together. */
static void all_gather(enum accel_axis axis, ncclDataType_t type, size_t size, const void *x, void *y, size_t outer,
                       size_t length) {
  const ncclComm_t comm = rt_nccl_along(axis);
  const accel_stream stream = rt_nccl_begin();
  int ranks;
  RT_NCCL(ncclCommCount(comm, &ranks));
  RT_NCCL(ncclGroupStart());
  for (size_t o = 0; o < outer; o++)
    RT_NCCL(ncclAllGather((const char *)x + o * length * size, (char *)y + o * (size_t)ranks * length * size, length,
                          type, comm, stream));
  RT_NCCL(ncclGroupEnd());
  rt_nccl_wait();
}

void accel_all_gather_parts(enum accel_axis axis, const float *x, float *y, size_t outer, size_t length) {
  all_gather(axis, ncclFloat32, sizeof *x, x, y, outer, length);
}

void accel_all_gather_bfloat16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t outer,
                                     size_t length) {
  all_gather(axis, ncclBfloat16, sizeof *x, x, y, outer, length);
}

void accel_all_gather_float16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t outer, size_t length) {
  all_gather(axis, ncclFloat16, sizeof *x, x, y, outer, length);
}

static void reduce_scatter(enum accel_axis axis, ncclDataType_t type, size_t size, const void *x, void *y, size_t outer,
                           size_t length) {
  const ncclComm_t comm = rt_nccl_along(axis);
  const accel_stream stream = rt_nccl_begin();
  int ranks;
  RT_NCCL(ncclCommCount(comm, &ranks));
  RT_NCCL(ncclGroupStart());
  for (size_t o = 0; o < outer; o++)
    RT_NCCL(ncclReduceScatter((const char *)x + o * (size_t)ranks * length * size, (char *)y + o * length * size,
                              length, type, ncclSum, comm, stream));
  RT_NCCL(ncclGroupEnd());
  rt_nccl_wait();
}

void accel_reduce_scatter_parts(enum accel_axis axis, const float *x, float *y, float *work, size_t outer,
                                size_t length) {
  (void)work;
  reduce_scatter(axis, ncclFloat32, sizeof *x, x, y, outer, length);
}

void accel_reduce_scatter_bfloat16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, uint16_t *work,
                                         size_t outer, size_t length) {
  (void)work;
  reduce_scatter(axis, ncclBfloat16, sizeof *x, x, y, outer, length);
}

void accel_reduce_scatter_float16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, uint16_t *work,
                                        size_t outer, size_t length) {
  (void)work;
  reduce_scatter(axis, ncclFloat16, sizeof *x, x, y, outer, length);
}

void accel_all_to_all(enum accel_axis axis, const void *x, void *y, size_t bytes) {
  const ncclComm_t comm = rt_nccl_along(axis);
  const accel_stream stream = rt_nccl_begin();
  int ranks;
  RT_NCCL(ncclCommCount(comm, &ranks));
  RT_NCCL(ncclGroupStart());
  for (int r = 0; r < ranks; r++) {
    RT_NCCL(ncclSend((const char *)x + (size_t)r * bytes, bytes, ncclUint8, r, comm, stream));
    RT_NCCL(ncclRecv((char *)y + (size_t)r * bytes, bytes, ncclUint8, r, comm, stream));
  }
  RT_NCCL(ncclGroupEnd());
  rt_nccl_wait();
}
