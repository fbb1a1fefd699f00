/* The gradient of a selective scan. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_SCAN_H
#define ACCEL_GPU_SCAN_H

#include "functions.h"
#include "group.h"

/* du, ddelta and da of channel i % channels of sequence i / channels, from the last step to the first, with the
 * gradient of its states carried. dy, u, delta, du and ddelta are [][steps][channels], a [channels][all], da
 * [][channels][all], b and c [][steps][all], states [][steps][channels][all]. */
template <size_t steps, size_t channels, size_t all>
__device__ inline void accel_scan_channel(float *du, float *ddelta, float *da, const float *dy, const float *u,
                                          const float *delta, const float *a, const float *b, const float *c,
                                          const float *states, size_t i) {
  const size_t r = i / channels, d = i % channels;
  float carried[all] = {0.0f}, a_sum[all] = {0.0f};
  for (size_t t = steps; t-- > 0;) {
    const size_t s = r * steps + t;
    const float step = delta[s * channels + d], own = u[s * channels + d], slope = dy[s * channels + d];
    float of_u = 0.0f, of_step = 0.0f;
    for (size_t n = 0; n < all; n++) {
      const float decay = accel_exp(step * a[d * all + n]), g = carried[n] + slope * c[s * all + n];
      const float past = t > 0 ? g * states[((s - 1) * channels + d) * all + n] * decay : 0.0f;
      of_u += g * step * b[s * all + n];
      of_step += past * a[d * all + n] + g * b[s * all + n] * own;
      a_sum[n] += past * step;
      carried[n] = g * decay;
    }
    du[s * channels + d] = of_u;
    ddelta[s * channels + d] = of_step;
  }
  for (size_t n = 0; n < all; n++) da[i * all + n] = a_sum[n];
}

/* db and dc [][steps][all] of sequence blockIdx.x, from the last step to the first, for as many neighbouring states as
 * `count` says from number blockIdx.y * count on: sums over channels, which a block of 256 threads shares. dy, u and
 * delta are [][steps][channels], a [channels][all], c [][steps][all], states [][steps][channels][all]. The sums of
 * `at_once` steps are made together. */
template <size_t steps, int channels, size_t all, int count, int at_once>
__device__ inline void accel_scan_states(float *db, float *dc, const float *dy, const float *u, const float *delta,
                                         const float *a, const float *c, const float *states) {
  constexpr int each = (channels + 255) / 256, values = 2 * count * at_once;
  __shared__ float parts[8][values];
  const size_t r = blockIdx.x, first = blockIdx.y * count, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float carried[each][count] = {{0.0f}};
  for (size_t end = steps; end > 0; end = end > at_once ? end - at_once : 0) {
    float sums[values];
#pragma unroll
    for (int e = 0; e < at_once; e++) {
      const bool there = (size_t)e < end;
      const size_t s = r * steps + (there ? end - 1 - e : 0);
      float b_sum[count] = {0.0f}, c_sum[count] = {0.0f};
#pragma unroll
      for (int m = 0; m < each; m++) {
        const size_t d = (size_t)m * 256 + threadIdx.x;
        if (!there || d >= channels) break;
        const float step = delta[s * channels + d], slope = dy[s * channels + d], drive = step * u[s * channels + d];
#pragma unroll
        for (int i = 0; i < count; i++) {
          const float g = carried[m][i] + slope * c[s * all + first + i];
          b_sum[i] += g * drive;
          c_sum[i] += slope * states[(s * channels + d) * all + first + i];
          carried[m][i] = g * accel_exp(step * a[d * all + first + i]);
        }
      }
#pragma unroll
      for (int i = 0; i < count; i++) {
        sums[(e * count + i) * 2] = accel_sum<32>(b_sum[i]);
        sums[(e * count + i) * 2 + 1] = accel_sum<32>(c_sum[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < values; i++)
      if (lane == 0) parts[warp][i] = sums[i];
    __syncthreads();
    const size_t e = threadIdx.x / (2 * count), n = first + threadIdx.x / 2 % count;
    if (threadIdx.x < values && e < end) {
      float sum = 0.0f;
      for (int w = 0; w < 8; w++) sum += parts[w][threadIdx.x];
      (threadIdx.x % 2 == 0 ? db : dc)[(r * steps + end - 1 - e) * all + n] = sum;
    }
    __syncthreads();
  }
}

#endif
