/* Matrix products by oneDNN whose bits do not depend on the number of threads: instead of matmul.h. */
#ifndef ACCEL_CPU_MATMUL_IN_BLOCKS_H
#define ACCEL_CPU_MATMUL_IN_BLOCKS_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdint.h>

#include "../gemv.h"

/* c = a b + beta c by oneDNN, within a parallel region by the calling thread alone. It fails only where oneDNN's
 * packing finds no memory; a step does not stop for that: main looks at the status between steps. */
static int accel_gemm_status;
static inline void accel_gemm_alone(char transa, char transb, int64_t rows, int64_t columns, int64_t depth,
                                    const float *a, int64_t a_step, const float *b, int64_t b_step, float beta,
                                    float *c, int64_t c_step) {
  const int status = (int)dnnl_sgemm(transa, transb, rows, columns, depth, 1.0f, a, a_step, b, b_step, beta, c, c_step);
#pragma omp atomic
  accel_gemm_status |= status;
}

/* The same in blocks of 96 columns, or rows where there are more of them. oneDNN divides a
 * matmul by the number of its threads, which changes the order of sums; within a parallel region it has one. */
static inline void accel_gemm(char transa, char transb, int64_t rows, int64_t columns, int64_t depth, const float *a,
                              int64_t a_step, const float *b, int64_t b_step, float beta, float *c, int64_t c_step) {
  const bool by_rows = rows > columns;
  const int64_t count = by_rows ? rows : columns;
#pragma omp parallel for
  for (int64_t first = 0; first < count; first += 96) {
    const int64_t part = count - first < 96 ? count - first : 96;
    const float *left = a + (by_rows ? first * (transa == 'N' ? a_step : 1) : 0);
    const float *right = b + (by_rows ? 0 : first * (transb == 'N' ? 1 : b_step));
    float *result = c + (by_rows ? first * c_step : first);
    accel_gemm_alone(transa, transb, by_rows ? part : rows, by_rows ? columns : part, depth, left, a_step, right,
                     b_step, beta, result, c_step);
  }
}

#endif
