/* Attention of a warp to keys and values, one query at a time. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_ATTEND_H
#define ACCEL_GPU_ATTEND_H

#include "functions.h"
#include "group.h"

/* Takes keys and their values up into what a query has found, those at first, first + step, ... before `end`, a warp
 * together: a lane has each 32nd of their columns. `many` are on their way at a time. Rows are so far apart. */
template <int columns, int many, typename type>
__device__ inline void accel_attend(float *result, float *highest, float *sum, const float *query, const type *keys,
                                    size_t key_row, const type *values, size_t value_row, size_t first, size_t end,
                                    size_t step) {
  constexpr int each = (columns + 31) / 32;
  const int lane = (int)threadIdx.x % 32;
  for (size_t s = first; s < end; s += many * step) {
    float scores[many], seen[many][each], top = *highest;
#pragma unroll
    for (int i = 0; i < many; i++) {
      const size_t at = s + i * step;
      float score = 0.0f;
#pragma unroll
      for (int e = 0; e < each; e++) {
        const int d = e * 32 + lane;
        score += at < end && d < columns ? query[e] * accel_float(keys[at * key_row + d]) : 0.0f;
        seen[i][e] = at < end && d < columns ? accel_float(values[at * value_row + d]) : 0.0f;
      }
      scores[i] = score;
    }
#pragma unroll
    for (int i = 0; i < many; i++) {
      scores[i] = s + i * step < end ? accel_sum<32>(scores[i]) : -INFINITY;
      top = scores[i] > top ? scores[i] : top;
    }
    const float shrink = *highest > -INFINITY ? accel_exp(*highest - top) : 0.0f;
    *sum *= shrink;
#pragma unroll
    for (int e = 0; e < each; e++) result[e] *= shrink;
#pragma unroll
    for (int i = 0; i < many; i++) {
      const float weight = s + i * step < end ? accel_exp(scores[i] - top) : 0.0f;
      *sum += weight;
#pragma unroll
      for (int e = 0; e < each; e++) result[e] += weight * seen[i][e];
    }
    *highest = top;
  }
}

#endif
