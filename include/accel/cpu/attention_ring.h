/* What kernels of attention in a ring (gen/ops/ring_attention.c) do that is no matmul. A row is a query of a head. */
#ifndef ACCEL_CPU_ATTENTION_RING_H
#define ACCEL_CPU_ATTENTION_RING_H

#include <stddef.h>
#include <string.h>

/* to[batch][heads][rows] = rows of so many bytes, which begin so many bytes apart in samples, heads and a head. */
static inline __attribute__((always_inline)) void accel_pack_heads(size_t batch, size_t heads, size_t rows,
                                                                   size_t bytes, void *to, const void *from,
                                                                   size_t sample, size_t head, size_t row) {
#pragma omp parallel for collapse(3)
  for (size_t b = 0; b < batch; b++)
    for (size_t h = 0; h < heads; h++)
      for (size_t i = 0; i < rows; i++)
        memcpy((char *)to + ((b * heads + h) * rows + i) * bytes, (const char *)from + b * sample + h * head + i * row,
               bytes);
}

/* Before the first step: rows have no values, no weights and no highest score. */
static inline __attribute__((always_inline)) void accel_begin_ring(size_t rows, size_t columns, float *sums, float *lse,
                                                                   float *total) {
#pragma omp parallel for
  for (size_t r = 0; r < rows; r++) {
    lse[r] = -3e38f;
    total[r] = 0.0f;
    for (size_t d = 0; d < columns; d++) sums[r * columns + d] = 0.0f;
  }
}

/* What earlier steps have left of a block of so many queries: o[query][stride], of which so many columns count. */
static inline __attribute__((always_inline)) void accel_load_queries(size_t queries, size_t columns, const float *lse,
                                                                     const float *total, const float *sums,
                                                                     float highest[static 32], float sum[static 32],
                                                                     float *o, size_t stride) {
  for (size_t i = 0; i < 32; i++) highest[i] = -3e38f;
  for (size_t i = 0; i < queries; i++) {
    highest[i] = lse[i];
    sum[i] = total[i];
    memcpy(o + i * stride, sums + i * columns, columns * sizeof *o);
  }
}

/* What this step leaves of it. */
static inline __attribute__((always_inline)) void
accel_store_queries(size_t queries, size_t columns, const float highest[static 32], const float sum[static 32],
                    const float *o, size_t stride, float *lse, float *total, float *sums) {
  for (size_t i = 0; i < queries; i++) {
    lse[i] = highest[i];
    total[i] = sum[i];
    memcpy(sums + i * columns, o + i * stride, columns * sizeof *o);
  }
}

/* to[rows][columns] += from[rows][stride]. */
static inline __attribute__((always_inline)) void accel_add_rows(size_t rows, size_t columns, const float *from,
                                                                 size_t stride, float *to) {
  for (size_t i = 0; i < rows; i++)
    for (size_t d = 0; d < columns; d++) to[i * columns + d] += from[i * stride + d];
}

#endif
