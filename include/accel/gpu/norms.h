/* Norms of gradients, in kernels: what the blocks of a kernel find in chunks, and what one block makes of it. For C++
 * that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_NORMS_H
#define ACCEL_GPU_NORMS_H

#include <string.h>

#include "../squares.h"
#include "functions.h"
#include "group.h"

enum { ACCEL_NORM_CHUNK = 16384 }; /* elements of a block of 512 threads */

/* What the sum of a norm has of an element: its square, or for the power 1 its size. */
template <int power, typename type> __device__ inline type accel_term(type x) {
  return power == 1 ? (x < 0 ? -x : x) : x * x;
}

template <int power> __device__ inline void accel_sum_powers_of_chunk(float *sums, const float *x, size_t count) {
  const size_t first = (size_t)blockIdx.x * ACCEL_NORM_CHUNK;
  const size_t end = first + ACCEL_NORM_CHUNK < count ? first + ACCEL_NORM_CHUNK : count;
  float sum = 0.0f;
  for (size_t i = first + threadIdx.x; i < end; i += 512) sum += accel_term<power>(x[i]);
  sum = accel_sum<512>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/* Leaves in sums[blockIdx.x] the sum of the squares of this block's chunk of x[count]. */
__device__ inline void accel_sum_chunk(float *sums, const float *x, size_t count) {
  accel_sum_powers_of_chunk<2>(sums, x, count);
}

/* The same of the sizes. */
__device__ inline void accel_sum_sizes_of_chunk(float *sums, const float *x, size_t count) {
  accel_sum_powers_of_chunk<1>(sums, x, count);
}

/* Leaves the size of the chunk's largest element there. */
__device__ inline void accel_largest_of_chunk(float *sums, const float *x, size_t count) {
  const size_t first = (size_t)blockIdx.x * ACCEL_NORM_CHUNK;
  const size_t end = first + ACCEL_NORM_CHUNK < count ? first + ACCEL_NORM_CHUNK : count;
  float largest = 0.0f;
  for (size_t i = first + threadIdx.x; i < end; i += 512) largest = accel_larger(largest, fabsf(x[i]));
  largest = accel_highest<512>(largest);
  if (threadIdx.x == 0) sums[blockIdx.x] = largest;
}

/* Leaves the size of the largest of the elements that this block finds of x[count], which the blocks along x share out,
 * in the sums' row blockIdx.y, by 512 threads. */
__device__ inline void accel_leave_largest(float *sums, const float *x, size_t count) {
  float largest = 0.0f;
  for (size_t i = (size_t)blockIdx.x * 512 + threadIdx.x; i < count; i += (size_t)gridDim.x * 512)
    largest = accel_larger(largest, fabsf(x[i]));
  largest = accel_highest<512>(largest);
  if (threadIdx.x == 0) sums[blockIdx.y * gridDim.x + blockIdx.x] = largest;
}

/* The sum of what was left, by a block of 512 threads. All get it. */
__device__ inline double accel_sum_of_chunks(const float *sums, int chunks) {
  double total = 0.0;
  for (int i = (int)threadIdx.x; i < chunks; i += 512) total += sums[i];
  return accel_sum<512>(total);
}

/* The largest of it, in the same way. */
__device__ inline double accel_largest_of_chunks(const float *sums, int chunks) {
  float largest = 0.0f;
  for (int i = (int)threadIdx.x; i < chunks; i += 512) largest = accel_larger(largest, sums[i]);
  return accel_highest<512>(largest);
}

/* ---- Sums that do not depend on their order: integers of 32 bits each, as accel_add_squares has them ---- */

/* Adds the bits of word `word` and of the next one to sums. */
__device__ inline void accel_add_words(unsigned long long *sums, int word, unsigned long long low,
                                       unsigned long long high) {
  atomicAdd(sums + word, low);
  atomicAdd(sums + word + 1, high);
}

/* Adds the terms of lines of 16 elements of x[], those from `first` on before `end`, to sums[ACCEL_SQUARES], of which
 * sums[i] counts 2^(32 i - 1054): those of a line in one order, and of these sums 32 bits each in integers. By blocks
 * of 256 threads; a thread adds up by itself what falls into the same integers, as most lines do. */
template <int power>
__device__ inline void accel_add_lines_from(unsigned long long *sums, const float *x, size_t first, size_t end) {
  __shared__ unsigned long long found[ACCEL_SQUARES];
  if (threadIdx.x < ACCEL_SQUARES) found[threadIdx.x] = 0;
  __syncthreads();
  int at = 0;
  unsigned long long low = 0, high = 0;
  for (size_t i = first + (size_t)blockIdx.x * 256 + threadIdx.x; i < end; i += (size_t)gridDim.x * 256) {
    double terms[16];
#pragma unroll
    for (int e = 0; e < 16; e++) terms[e] = accel_term<power>((double)x[i * 16 + e]);
#pragma unroll
    for (int half = 8; half > 0; half /= 2)
#pragma unroll
      for (int e = 0; e < half; e++) terms[e] += terms[e + half];
    uint64_t bits;
    memcpy(&bits, terms, sizeof bits);
    const int exponent = (int)(bits >> 52 & 2047u);
    if (exponent == 0) continue;
    const uint64_t kept = ((bits & 0xfffffffffffffu) | 1ull << 52) >> 21 << exponent % 32;
    if (exponent / 32 != at) {
      accel_add_words(found, at, low, high);
      at = exponent / 32;
      low = high = 0;
    }
    low += kept & 0xffffffffu;
    high += kept >> 32;
  }
  accel_add_words(found, at, low, high);
  __syncthreads();
  if (threadIdx.x < ACCEL_SQUARES && found[threadIdx.x] > 0) atomicAdd(sums + threadIdx.x, found[threadIdx.x]);
}

/* The squares of the first `lines` of x[]. */
__device__ inline void accel_add_lines(unsigned long long *sums, const float *x, size_t lines) {
  accel_add_lines_from<2>(sums, x, 0, lines);
}

/* Their sizes. */
__device__ inline void accel_add_sizes_of_lines(unsigned long long *sums, const float *x, size_t lines) {
  accel_add_lines_from<1>(sums, x, 0, lines);
}

template <int power>
__device__ inline void accel_add_powers_within(unsigned long long *sums, const float *x, size_t count, size_t at,
                                               size_t first, size_t n) {
  const size_t last = first + n;
  const size_t before = first > at ? first - at : 0, to = last > at ? last - at : 0;
  accel_add_lines_from<power>(sums, x, before / 16, (to < count ? to : count) / 16);
}

/* The squares of those of x[count], which are the elements of a longer array from its element `at` on, that are among
 * its `n` elements from `first` on: all of these numbers are multiples of 16. */
__device__ inline void accel_add_lines_within(unsigned long long *sums, const float *x, size_t count, size_t at,
                                              size_t first, size_t n) {
  accel_add_powers_within<2>(sums, x, count, at, first, n);
}

/* Their sizes. */
__device__ inline void accel_add_sizes_within(unsigned long long *sums, const float *x, size_t count, size_t at,
                                              size_t first, size_t n) {
  accel_add_powers_within<1>(sums, x, count, at, first, n);
}

/* The number that such sums stand for; not one where something was not finite. */
__device__ inline double accel_sum_of_words(const int64_t *sums) {
  double total = sums[ACCEL_SQUARES - 2] != 0 || sums[ACCEL_SQUARES - 1] != 0 ? NAN : 0.0;
  for (int i = ACCEL_SQUARES - 1; i >= 0; i--) total += ldexp((double)sums[i], 32 * i - 1054);
  return total;
}

/* squares[blockIdx.x] = the sum of what so many blocks have left of it after the squares of all, by so many
 * threads. */
template <int threads>
__global__ void __launch_bounds__(threads) accel_add_squares_of_blocks(double *squares, unsigned blocks) {
  double sum = 0.0;
  for (unsigned i = threadIdx.x; i < blocks; i += threads) sum += squares[gridDim.x + blockIdx.x * blocks + i];
  sum = accel_sum<threads>(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

/* Squares of the gradients in chunks: of micro-batch number `micro` of a step alone; 0: of any. */
template <typename type>
__global__ void __launch_bounds__(512)
    accel_sum_lengths(float *sums, const float *gradients, size_t count, const type *progress, int64_t micro) {
  if (micro > 0 && progress->micro != micro) return;
  accel_sum_chunk(sums, gradients, count);
}

/* Leaves the sum of what 256 threads have of parameter blockIdx.y in the n-th row of partial sums, which has a part of
 * each of its blocks. */
__device__ inline void accel_leave_part(double *partial, size_t n, double sum) {
  sum = accel_sum<256>(sum);
  if (threadIdx.x == 0) partial[(n * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = sum;
}

/* The sum of these parts. All threads get it. */
__device__ inline double accel_sum_of_parts(const double *partial, size_t n) {
  double sum = 0.0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += 256) sum += partial[(n * gridDim.y + blockIdx.y) * gridDim.x + i];
  return accel_sum<256>(sum);
}

#endif
