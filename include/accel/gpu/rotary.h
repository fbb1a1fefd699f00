/* Rotary positions. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_ROTARY_H
#define ACCEL_GPU_ROTARY_H

#include "functions.h"
#include "pack.h"

/* The pair (left, right), turned by the angle of this cosine and sine, or back. */
template <bool back, typename result, typename type>
__device__ inline void accel_turn_pair(result *to_left, result *to_right, type left, type right, float c, float s) {
  const float l = accel_float(left), r = accel_float(right);
  accel_put(to_left, back ? l * c + r * s : l * c - r * s);
  accel_put(to_right, back ? r * c - l * s : r * c + l * s);
}

/* As many pairs as `width` says, neighbours from to[at] on, of which the right halves are `half` columns after the left
 * ones. */
template <int width, size_t half, bool back, typename result, typename type>
__device__ inline void accel_turn_halves(result *to, size_t at, const type *from, const float *cos, const float *sin) {
  const accel_pack<float, width> c = accel_load<width>(cos), s = accel_load<width>(sin);
  const accel_pack<type, width> first = accel_load<width>(from), second = accel_load<width>(from + half);
  accel_pack<result, width> to_first, to_second;
#pragma unroll
  for (int e = 0; e < width; e++)
    accel_turn_pair<back>(&to_first.items[e], &to_second.items[e], first.items[e], second.items[e], c.items[e],
                          s.items[e]);
  accel_store(to, at, to_first);
  accel_store(to, at + half, to_second);
}

#endif
