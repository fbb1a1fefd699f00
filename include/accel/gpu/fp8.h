/* Tensors rounded to 8 bits, in kernels (accel/fp8.h). For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_FP8_H
#define ACCEL_GPU_FP8_H

#include <stdint.h>

#include "functions.h"
#include "group.h"

#include "../fp8.h"

/* sums[blockIdx.x] = the largest size of this block's part of x[count], by 256 threads; a NaN where one is. */
template <size_t count, typename type> __device__ inline void accel_largest_sizes(float *sums, const type *x) {
  float largest = 0.0f;
  for (size_t i = (size_t)blockIdx.x * 256 + threadIdx.x; i < count; i += (size_t)gridDim.x * 256)
    largest = accel_larger(fabsf(accel_float(x[i])), largest);
  largest = accel_highest<256>(largest);
  if (threadIdx.x == 0) sums[blockIdx.x] = largest;
}

/* The largest of the sizes of so many blocks, by 256 threads. All get it. */
template <size_t blocks> __device__ inline float accel_largest_of_blocks(const float *sums) {
  float largest = 0.0f;
  for (size_t i = threadIdx.x; i < blocks; i += 256) largest = accel_larger(sums[i], largest);
  return accel_highest<256>(largest);
}

/* x rounded to E4M3 or E5M2, stored as its code, or as the float or bfloat16 that it is. */
template <bool e5m2, typename type> __device__ inline void accel_put_fp8(type *to, float x) {
  const float rounded = e5m2 ? accel_round_e5m2(x) : accel_round_e4m3(x);
  if constexpr (sizeof(type) == 1)
    *to = e5m2 ? accel_e5m2_code(rounded) : accel_e4m3_code(rounded);
  else
    accel_put(to, rounded);
}

/* y[columns][rows] = x[rows][columns], codes of 8 bits, by 256 threads of which a block has 32 x 32 of them. */
template <size_t rows, size_t columns> __device__ inline void accel_transpose_codes(uint8_t *y, const uint8_t *x) {
  __shared__ uint8_t tile[32][33];
  constexpr size_t across = (columns + 31) / 32;
  const size_t first_row = blockIdx.x / across * 32, first_column = blockIdx.x % across * 32;
  const size_t lane = threadIdx.x % 32;
  for (size_t r = threadIdx.x / 32; r < 32; r += 8)
    if (first_row + r < rows && first_column + lane < columns)
      tile[r][lane] = x[(first_row + r) * columns + first_column + lane];
  __syncthreads();
  for (size_t c = threadIdx.x / 32; c < 32; c += 8)
    if (first_column + c < columns && first_row + lane < rows)
      y[(first_column + c) * rows + first_row + lane] = tile[lane][c];
}

/* Delayed scaling, by the 32 threads of a block: the sizes of a tensor move by one place, so that the newest is the
 * last one and history[0] is 0, and *scale becomes that of the next batch: most over the largest of all of these, or
 * over the newest. */
template <size_t length, bool of_all>
__device__ inline void accel_fp8_next_scale(float *scale, float *history, float newest, float most) {
  float size = newest;
  for (size_t first = 0; first < length; first += 32) {
    const size_t i = first + threadIdx.x;
    const float moved = i + 1 < length ? history[i + 1] : newest;
    if (of_all && i < length && moved > size) size = moved;
    __syncthreads();
    if (i < length) history[i] = i == 0 ? 0.0f : moved;
    __syncthreads();
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, size, distance);
    if (other > size) size = other;
  }
  if (threadIdx.x == 0) *scale = accel_fp8_scale_after(*scale, size, most);
}

#endif
