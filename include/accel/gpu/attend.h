/* Attention of one query at a time, whose keys the warps of a block share out (Dao, Fu, Ermon, Rudra, Re,
 * arXiv:2205.14135). For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_ATTEND_H
#define ACCEL_GPU_ATTEND_H

#include "functions.h"
#include "group.h"

/* Takes keys and their values up into what a query has found, those at first, first + step, ... before `end`, a warp
 * together: a lane has each 32nd of their columns. Scores are within (-cap, cap); 0: they are not capped. `many` are on
 * their way at a time. Rows are so far apart. */
template <int columns, int many, typename type>
__device__ inline void accel_attend(float *result, float *highest, float *sum, const float *query, const type *keys,
                                    size_t key_row, const type *values, size_t value_row, size_t first, size_t end,
                                    size_t step, float cap) {
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
      scores[i] = accel_sum<32>(scores[i]);
      if (cap > 0.0f) scores[i] = cap * accel_tanh(scores[i] / cap);
      scores[i] = s + i * step < end ? scores[i] : -INFINITY;
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

/* Attention of new queries, at the positions from at[0] on, to the keys up to their own position, which next_k and
 * next_v [batch][group][keys][columns] have but for the new ones, k and v, and get. Blocks of 16 warps are heads,
 * queries and the batch along blockIdx.x, y and z; what the warps have found is put together in their order. `shape`
 * has what is constant, as in attend_by_rows.h. */
template <typename shape, typename type>
__device__ inline void accel_attend_cached(type *y, float *next_k, float *next_v, const type *q, const type *k,
                                           const type *v, const int32_t *at, float cap) {
  constexpr int columns = shape::columns, warps = 16, each = (columns + 31) / 32, many = each < 8 ? 16 / each : 2;
  constexpr size_t group = shape::heads / shape::groups, window = shape::window;
  constexpr int32_t newest = (int32_t)(shape::keys - shape::queries);
  __shared__ float tops[warps], shares[warps], parts[warps][columns];
  const size_t h = blockIdx.x, t = blockIdx.y, b = blockIdx.z, g = h / group;
  const size_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t first = (size_t)at[0] > (size_t)newest ? (size_t)newest : (size_t)at[0];
  float *kh = next_k + (b * shape::groups + g) * (shape::keys * columns);
  float *vh = next_v + (b * shape::groups + g) * (shape::keys * columns);
  const type *qr = q + b * shape::q_batch + h * shape::q_head + t * shape::q_row;
  const type *kr = k + b * shape::k_batch + g * shape::k_head, *vr = v + b * shape::v_batch + g * shape::v_head;
  float query[each] = {0.0f}, result[each] = {0.0f}, highest = -INFINITY, sum = 0.0f;
#pragma unroll
  for (int e = 0; e < each; e++) {
    const size_t d = e * 32 + lane;
    if (d < columns) query[e] = accel_float(qr[d]) * shape::scale;
  }
  if constexpr (newest > 0) {
    const size_t begin = window > 0 && first + t + 1 > window ? first + t + 1 - window : 0;
    accel_attend<columns, many>(result, &highest, &sum, query, kh, columns, vh, columns, begin + warp, first, warps,
                                cap);
  }
  const size_t begin = window > 0 && t + 1 > window ? t + 1 - window : 0;
  accel_attend<columns, many>(result, &highest, &sum, query, kr, shape::k_row, vr, shape::v_row, begin + warp, t + 1,
                              warps, cap);
  if (lane == 0) {
    tops[warp] = highest;
    shares[warp] = sum;
  }
#pragma unroll
  for (int e = 0; e < each; e++) {
    const size_t d = e * 32 + lane;
    if (d < columns) parts[warp][d] = result[e];
  }
  __syncthreads();
  float top = tops[0], all = 0.0f;
  for (int i = 1; i < warps; i++) top = tops[i] > top ? tops[i] : top;
  for (int i = 0; i < warps; i++) all += accel_exp(tops[i] - top) * shares[i];
  for (size_t d = threadIdx.x; d < columns; d += warps * 32) {
    float found = 0.0f;
    for (int i = 0; i < warps; i++) found += accel_exp(tops[i] - top) * parts[i][d];
    accel_put(y + b * shape::y_batch + h * shape::y_head + t * shape::y_row + d, found / all);
    if (h % group > 0) continue;
    kh[(first + t) * columns + d] = accel_float(kr[t * shape::k_row + d]);
    vh[(first + t) * columns + d] = accel_float(vr[t * shape::v_row + d]);
  }
}

#endif
