/* Batch normalisation: where a channel has more elements than a block's threads hold in registers, blocks share them
 * out and leave their sums, and those of a second kernel put the sums of a channel together before they continue. For
 * C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_BATCH_NORM_H
#define ACCEL_GPU_BATCH_NORM_H

#include <stdint.h>

#include "functions.h"
#include "group.h"

/* The elements of a block, which is part blockIdx.x % parts of channel blockIdx.x / parts of [batch][channels][inner].
 * A channel has `count`; a block has 512 threads. */
template <size_t of_all, size_t count, size_t of_inner, size_t parts> struct accel_channel_part {
  static constexpr int threads = 512;
  static constexpr size_t channels = of_all, all = count, inner = of_inner, blocks = parts;
  static constexpr bool few = count < 2147483648;
  static constexpr int each = (count + parts * threads - 1) / (parts * threads); /* of a thread */

  typedef typename accel_either<few, uint32_t, size_t>::type index;
};

/* The n-th element of a thread, among those of its block's channel. */
template <typename part> __device__ inline typename part::index accel_element_of_part(int n) {
  return ((typename part::index)(blockIdx.x % part::blocks) * part::each + n) * part::threads + threadIdx.x;
}

/* Whether the thread has it. */
template <typename part> __device__ inline bool accel_part_has(int n) {
  return part::all % (part::each * part::threads) == 0 || accel_element_of_part<part>(n) < part::all;
}

/* Where element i of the block's channel is. */
template <typename part> __device__ inline size_t accel_place_in_part(typename part::index i) {
  return ((size_t)(i / part::inner) * part::channels + blockIdx.x / part::blocks) * part::inner + i % part::inner;
}

/* How many elements part p has. */
template <typename part> __device__ inline float accel_count_of_part(size_t p) {
  return part::all % (part::each * part::threads) == 0 || p + 1 < part::blocks
             ? (float)(part::each * part::threads)
             : (float)(part::all - (part::blocks - 1) * part::each * part::threads);
}

/* What part p of the block's channel left in sums[channels][parts][2]. */
template <typename part> __device__ inline const float *accel_sums_of_part(const float *sums, size_t p) {
  return sums + (blockIdx.x / part::blocks * part::blocks + p) * 2;
}

/* Reads a block's elements of x. */
template <typename part, typename type> __device__ inline void accel_take_part(float own[part::each], const type *x) {
#pragma unroll
  for (int n = 0; n < part::each; n++) {
    const typename part::index i = accel_element_of_part<part>(n);
    if (i >= part::all) break;
    own[n] = accel_float(x[accel_place_in_part<part>(i)]);
  }
}

/* The mean of a block's elements of x, which it takes, and the sum of squares about it (Chan, Golub, LeVeque, The
 * American Statistician 37, 1983). All threads get them. */
template <typename part, typename type>
__device__ inline void accel_measure_part(float own[part::each], float *middle, float *squares, const type *x) {
  float sum = 0.0f, about = 0.0f;
#pragma unroll
  for (int n = 0; n < part::each; n++) {
    const typename part::index i = accel_element_of_part<part>(n);
    if (i >= part::all) break;
    own[n] = accel_float(x[accel_place_in_part<part>(i)]);
    sum += own[n];
  }
  const float average = accel_sum<part::threads>(sum) / accel_count_of_part<part>(blockIdx.x % part::blocks);
#pragma unroll
  for (int n = 0; n < part::each && accel_part_has<part>(n); n++) about += (own[n] - average) * (own[n] - average);
  *squares = accel_sum<part::threads>(about);
  *middle = average;
}

/* Leaves those of a block in sums[channels][parts][2]. */
template <typename part, typename type> __device__ inline void accel_batch_norm_part(float *sums, const type *x) {
  float own[part::each], middle, squares;
  accel_measure_part<part>(own, &middle, &squares, x);
  if (threadIdx.x > 0) return;
  sums[(size_t)blockIdx.x * 2] = middle;
  sums[(size_t)blockIdx.x * 2 + 1] = squares;
}

/* y = (x - mean) rstd weight + bias; the running statistics move by `momentum`. `sums` is what parts left, where a
 * channel has several. */
template <typename part, typename result, typename given, typename scales, typename shifts>
__device__ inline void
accel_batch_norm(const float *sums, float eps, float momentum, result *y, float *mean, float *rstd, float *next_mean,
                 float *next_var, int64_t *next_count, const given *x, const scales *weight, const shifts *bias,
                 const float *running_mean, const float *running_var, const int64_t *num_batches_tracked) {
  const size_t c = blockIdx.x / part::blocks;
  float own[part::each], average;
  typename accel_either<part::blocks == 1, float, double>::type squares = 0;
  if constexpr (part::blocks == 1) {
    accel_measure_part<part>(own, &average, &squares, x);
  } else {
    double total = 0.0;
    accel_take_part<part>(own, x);
    for (size_t p = threadIdx.x; p < part::blocks; p += part::threads)
      total += (double)accel_sums_of_part<part>(sums, p)[0] * accel_count_of_part<part>(p);
    const double middle = accel_sum<part::threads>(total) / part::all;
    for (size_t p = threadIdx.x; p < part::blocks; p += part::threads) {
      const float *of_part = accel_sums_of_part<part>(sums, p);
      squares += of_part[1] + (of_part[0] - middle) * (of_part[0] - middle) * accel_count_of_part<part>(p);
    }
    squares = accel_sum<part::threads>(squares);
    average = (float)middle;
  }
  const float variance = (float)(squares / part::all), s = 1.0f / sqrtf(variance + eps);
  const float factor = s * accel_float(weight[c]), offset = accel_float(bias[c]) - average * factor;
#pragma unroll
  for (int n = 0; n < part::each; n++) {
    const typename part::index i = accel_element_of_part<part>(n);
    if (i >= part::all) break;
    accel_write<false>(y + accel_place_in_part<part>(i), own[n] * factor + offset);
  }
  if (threadIdx.x > 0 || blockIdx.x % part::blocks > 0) return;
  mean[c] = average;
  rstd[c] = s;
  next_mean[c] = running_mean[c] + momentum * (average - running_mean[c]);
  next_var[c] = running_var[c] + momentum * ((float)(squares / (part::all - 1)) - running_var[c]);
  if (c == 0) next_count[0] = num_batches_tracked[0] + 1;
}

/* Leaves the sums of a block's dy, and of its dy (x - mean), in sums[channels][parts][2]. */
template <typename part, typename slopes, typename given>
__device__ inline void accel_batch_norm_backward_part(float *sums, const slopes *dy, const given *x,
                                                      const float *mean) {
  const float average = mean[blockIdx.x / part::blocks];
  float sum = 0.0f, product = 0.0f;
#pragma unroll
  for (int n = 0; n < part::each; n++) {
    const typename part::index i = accel_element_of_part<part>(n);
    if (i >= part::all) break;
    const size_t at = accel_place_in_part<part>(i);
    const float g = accel_float(dy[at]);
    sum += g;
    product += g * (accel_float(x[at]) - average);
  }
  sum = accel_sum<part::threads>(sum);
  product = accel_sum<part::threads>(product);
  if (threadIdx.x > 0) return;
  sums[(size_t)blockIdx.x * 2] = sum;
  sums[(size_t)blockIdx.x * 2 + 1] = product;
}

/* With n = (x - mean) rstd: dx (+)= rstd weight (dy - avg(dy) - n avg(dy n)), dweight (+)= sum dy n, dbias (+)= sum dy.
 * `sums` is what parts left, where a channel has several. */
template <typename part, bool add, bool add_weight, bool add_bias, typename result, typename scale_slopes,
          typename shift_slopes, typename slopes, typename given, typename scales>
__device__ inline void accel_batch_norm_backward(const float *sums, result *dx, scale_slopes *dweight,
                                                 shift_slopes *dbias, const slopes *dy, const given *x,
                                                 const scales *weight, const float *mean, const float *rstd) {
  const size_t c = blockIdx.x / part::blocks;
  const float average = mean[c], s = rstd[c];
  float g[part::each], away[part::each], sum = 0.0f, product = 0.0f;
#pragma unroll
  for (int n = 0; n < part::each; n++) {
    const typename part::index i = accel_element_of_part<part>(n);
    if (i >= part::all) break;
    const size_t at = accel_place_in_part<part>(i);
    g[n] = accel_float(dy[at]);
    away[n] = accel_float(x[at]) - average;
    if (part::blocks > 1) continue;
    sum += g[n];
    product += g[n] * away[n];
  }
  double total = sum, products = product;
  if (part::blocks > 1)
    for (size_t p = threadIdx.x; p < part::blocks; p += part::threads) {
      total += accel_sums_of_part<part>(sums, p)[0];
      products += accel_sums_of_part<part>(sums, p)[1];
    }
  total = accel_sum<part::threads>(total);
  products = accel_sum<part::threads>(products);
  const float slope = (float)(products * s), factor = s * accel_float(weight[c]);
  const float shift = (float)(total / part::all), projection = slope * s / part::all;
#pragma unroll
  for (int n = 0; n < part::each; n++) {
    const typename part::index i = accel_element_of_part<part>(n);
    if (i >= part::all) break;
    accel_write<add>(dx + accel_place_in_part<part>(i), factor * (g[n] - shift - away[n] * projection));
  }
  if (threadIdx.x > 0 || blockIdx.x % part::blocks > 0) return;
  accel_write<add_weight>(dweight + c, slope);
  accel_write<add_bias>(dbias + c, (float)total);
}

#endif
