/* Gradients that ranks exchange as factors of matrices, in kernels. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_FACTORS_H
#define ACCEL_GPU_FACTORS_H

#include "functions.h"
#include "group.h"

#include "../factors.h"

/* The columns of a factor [rows][rank] become orthonormal, by Gram's and Schmidt's way; one of zeros stays one.
 * epsilon: added to a column's length. By a block of 512 threads. */
__device__ inline void accel_orthogonalize(float *m, size_t rows, size_t rank, float epsilon) {
  for (size_t k = 0; k < rank; k++) {
    double squares = 0.0;
    for (size_t i = threadIdx.x; i < rows; i += 512) squares += (double)m[i * rank + k] * m[i * rank + k];
    squares = accel_sum<512>(squares);
    const float length = (float)sqrt(squares) + epsilon;
    const float scale = length > 0.0f ? 1.0f / length : 0.0f;
    for (size_t i = threadIdx.x; i < rows; i += 512) m[i * rank + k] *= scale;
    for (size_t l = k + 1; l < rank; l++) {
      double along = 0.0;
      for (size_t i = threadIdx.x; i < rows; i += 512) along += (double)m[i * rank + k] * m[i * rank + l];
      along = accel_sum<512>(along);
      for (size_t i = threadIdx.x; i < rows; i += 512) m[i * rank + l] -= (float)along * m[i * rank + k];
    }
  }
}

/* left = m right: left[rows][rank] from m[rows][columns] and right[columns][rank], a row by each warp of 256 threads,
 * `at_once` of its columns at a time. */
template <int at_once>
__device__ inline void accel_multiply_rows(float *left, const float *m, const float *right, size_t rows, size_t columns,
                                           size_t rank) {
  for (size_t i = (size_t)blockIdx.x * 8 + threadIdx.x / 32; i < rows; i += (size_t)gridDim.x * 8)
    for (size_t first = 0; first < rank; first += at_once) {
      const size_t count = rank - first < at_once ? rank - first : at_once;
      float sums[at_once] = {0.0f};
      for (size_t j = threadIdx.x % 32; j < columns; j += 32)
        for (size_t k = 0; k < count; k++) sums[k] += m[i * columns + j] * right[j * rank + first + k];
      for (size_t k = 0; k < count; k++) {
        const float sum = accel_sum<32>(sums[k]);
        if (threadIdx.x % 32 == 0) left[i * rank + first + k] = sum;
      }
    }
}

/* right = transposed m left: right[columns][rank] from m[rows][columns] and left[rows][rank], by blocks of 32 columns
 * and 32 groups of rows, each a warp of 1024 threads. */
template <int at_once>
__device__ inline void accel_multiply_columns(float *right, const float *m, const float *left, size_t rows,
                                              size_t columns, size_t rank) {
  const size_t group = threadIdx.x / 32, panels = (columns + 31) / 32;
  __shared__ float parts[32][33];
  for (size_t panel = blockIdx.x; panel < panels; panel += gridDim.x)
    for (size_t first = 0; first < rank; first += at_once) {
      const size_t count = rank - first < at_once ? rank - first : at_once;
      const size_t j = panel * 32 + threadIdx.x % 32;
      float sums[at_once] = {0.0f};
      for (size_t i = group; j < columns && i < rows; i += 32)
        for (size_t k = 0; k < count; k++) sums[k] += m[i * columns + j] * left[i * rank + first + k];
      for (size_t k = 0; k < count; k++) {
        parts[group][threadIdx.x % 32] = sums[k];
        __syncthreads();
        float sum = 0.0f;
        for (int g = 0; g < 32 && group == 0; g++) sum += parts[g][threadIdx.x];
        if (group == 0 && j < columns) right[j * rank + first + k] = sum;
        __syncthreads();
      }
    }
}

#endif
