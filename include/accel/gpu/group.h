/* What threads of a warp or of a block find together. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_GROUP_H
#define ACCEL_GPU_GROUP_H

#include <stdint.h>

#include "functions.h"

/* The sum over the threads of a group, which is a warp, a part of one or a block of so many, in an order that never
 * changes. All get it. */
template <int threads, typename number> __device__ inline number accel_sum(number x) {
  constexpr int lanes = threads < 32 ? threads : 32;
  for (int distance = lanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
  if constexpr (threads > 32) {
    __shared__ number parts[threads / 32];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < threads / 32; i++) x += parts[i];
    __syncthreads();
  }
  return x;
}

/* The larger of two, a NaN where one is. */
__device__ inline float accel_larger(float a, float b) {
  return a > b || a != a ? a : b;
}

/* The largest over a group, as accel_sum's. */
template <int threads> __device__ inline float accel_highest(float x) {
  for (int distance = 16; distance > 0; distance /= 2) x = accel_larger(x, __shfl_xor_sync(0xffffffffu, x, distance));
  if constexpr (threads > 32) {
    __shared__ float parts[threads / 32];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    for (int i = 0; i < threads / 32; i++) x = accel_larger(x, parts[i]);
    __syncthreads();
  }
  return x;
}

/* The lowest of `count` whole numbers, at least one, by the threads of a warp. All get it. */
__device__ inline int32_t accel_lowest(const int32_t *from, size_t count) {
  int32_t lowest = from[0];
  for (size_t i = threadIdx.x % 32; i < count; i += 32) lowest = from[i] < lowest ? from[i] : lowest;
  for (int distance = 16; distance > 0; distance /= 2) {
    const int32_t other = __shfl_xor_sync(0xffffffffu, lowest, distance);
    lowest = other < lowest ? other : lowest;
  }
  return lowest;
}

/* The largest of what the lanes of a warp have found and its position, the first of equal ones. A lane that has found
 * nothing has the position `none`. All get it. */
template <uint32_t none> __device__ inline void accel_first_largest(float *best, uint32_t *position) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, *best, distance);
    const uint32_t there = __shfl_xor_sync(0xffffffffu, *position, distance);
    const bool better = there < none && (other > *best || (other == *best && there < *position) || *position == none);
    *best = better ? other : *best;
    *position = better ? there : *position;
  }
}

/* The sum over rows [first, last) of a matrix's column, of which a block has 32 from blockIdx.x * 32 on, by 32 groups
 * of rows. The thread of that number gets that of the column. */
template <typename type>
__device__ inline float accel_sum_column(const type *matrix, size_t first, size_t last, size_t columns) {
  __shared__ float parts[32][33];
  const size_t c = (size_t)blockIdx.x * 32 + threadIdx.x % 32, group = threadIdx.x / 32;
  float sum = 0.0f;
  for (size_t r = first + group; c < columns && r < last; r += 32) sum += accel_float(matrix[r * columns + c]);
  parts[group][threadIdx.x % 32] = sum;
  __syncthreads();
  if (group > 0 || c >= columns) return 0.0f;
  sum = 0.0f;
  for (int i = 0; i < 32; i++) sum += parts[i][threadIdx.x];
  return sum;
}

/* to[c] (+)= the sum over r of matrix[r][c]. */
template <bool add, typename type>
__device__ inline void accel_add_columns(type *to, const float *matrix, size_t rows, size_t columns) {
  const size_t c = (size_t)blockIdx.x * 32 + threadIdx.x % 32;
  const float sum = accel_sum_column(matrix, 0, rows, columns);
  if (threadIdx.x < 32 && c < columns) accel_write<add>(to + c, sum);
}

/* The same of one matrix for each blockIdx.y. */
template <bool add, typename type>
__global__ void __launch_bounds__(1024) accel_columns(type *to, const float *from, size_t rows, size_t columns) {
  accel_add_columns<add>(to + blockIdx.y * columns, from + blockIdx.y * rows * columns, rows, columns);
}

/* The same of two matrices that follow each other. */
template <bool add, typename type>
__global__ void __launch_bounds__(1024)
    accel_two_columns(type *first, type *second, const float *from, size_t rows, size_t columns) {
  if (blockIdx.y == 0)
    accel_add_columns<add>(first, from, rows, columns);
  else
    accel_add_columns<add>(second, from + rows * columns, rows, columns);
}

/* sums[blockIdx.x] = the sum of this block's part of x[count], by 512 threads. */
template <size_t count, typename type> __device__ inline void accel_sum_all(float *sums, const type *x) {
  float sum = 0.0f;
  for (size_t i = (size_t)blockIdx.x * 512 + threadIdx.x; i < count; i += (size_t)gridDim.x * 512)
    sum += accel_float(x[i]);
  sum = accel_sum<512>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/* The sum of row[columns], by so many threads, of which this is number `lane`. All get it. */
template <int threads, typename type>
__device__ inline float accel_sum_row_of(const type *row, size_t columns, size_t lane) {
  float sum = 0.0f;
  for (size_t c = lane; c < columns; c += threads) sum += accel_float(row[c]);
  return accel_sum<threads>(sum);
}

/* The sum of the numbers of a position in x[][kept][inner], over the outer ones from `first` up to `last`: a warp of
 * 256 threads has one of these at a time. The first thread gets it. */
template <size_t kept, size_t inner, typename type>
__device__ inline float accel_sum_between(const type *x, size_t position, size_t first, size_t last) {
  float sum = 0.0f;
  for (size_t n = first + threadIdx.x / 32; n < last; n += 8) {
    const type *from = x + (n * kept + position) * inner;
    for (size_t i = threadIdx.x % 32; i < inner; i += 32) sum += accel_float(from[i]);
  }
  return accel_sum<256>(sum);
}

#endif
