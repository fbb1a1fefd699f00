/* Matrix products by oneDNN, which shares one out among threads as it likes; those of a row are in gemv.h. */
#ifndef ACCEL_CPU_MATMUL_H
#define ACCEL_CPU_MATMUL_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdint.h>

#include "../gemv.h"

/* c = a b + beta c by oneDNN, which fails only where its packing finds no memory. A step does not stop for that: main
 * looks at the status between steps. */
static int accel_gemm_status;
static inline void accel_gemm(char transa, char transb, int64_t rows, int64_t columns, int64_t depth, const float *a,
                              int64_t a_step, const float *b, int64_t b_step, float beta, float *c, int64_t c_step) {
  const int status = (int)dnnl_sgemm(transa, transb, rows, columns, depth, 1.0f, a, a_step, b, b_step, beta, c, c_step);
#pragma omp atomic
  accel_gemm_status |= status;
}

#endif
