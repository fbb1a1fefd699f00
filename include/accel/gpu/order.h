/* Positions sorted by group, and the largest of a row. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_ORDER_H
#define ACCEL_GPU_ORDER_H

#include <stdint.h>

#include <accel/gpu/launch.h>

#include "functions.h"
#include "group.h"

/* Writes those positions of of[matrices][rows][choices], or their rows, where it is own_group, in the order of priority
 * into y[count] from `next` on. Of a matrix it takes at most `capacity`, where that is not 0, and marks in
 * late[position] whether the capacity was exhausted: all first choices come first. A block of so many threads. */
template <int threads, size_t matrices, size_t rows, size_t choices, bool of_rows, int32_t capacity, typename number>
__device__ inline void accel_write_in_order(int32_t *y, uint32_t count, int32_t next, uint8_t *late, const number *of,
                                            number own_group) {
  __shared__ int32_t found[threads / 32];
  const size_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (size_t b = 0; b < matrices; b++) {
    int32_t taken = 0;
    for (size_t first = 0; first < rows * choices; first += threads) {
      const size_t n = first + threadIdx.x;
      const bool own = n < rows * choices && of[(b * rows + n % rows) * choices + n / rows] == own_group;
      const unsigned warps = __ballot_sync(0xffffffffu, own);
      if (lane == 0) found[warp] = __popc(warps);
      __syncthreads();
      int32_t here = taken + __popc(warps & ((1u << lane) - 1u));
      for (size_t w = 0; w < threads / 32; w++) {
        here += w < warp ? found[w] : 0;
        taken += found[w];
      }
      __syncthreads();
      const uint32_t to = (uint32_t)(next + here);
      if constexpr (capacity > 0)
        if (n < rows * choices && own) late[(b * rows + n % rows) * choices + n / rows] = here >= capacity;
      if (n < rows * choices && own && (capacity == 0 || here < capacity) && to < count)
        y[to] = (int32_t)(of_rows ? b * rows + n % rows : (b * rows + n % rows) * choices + n / rows);
    }
    next += capacity > 0 && taken > capacity ? capacity : taken;
  }
}

/* *y = the index of the largest of row[count], the first of equal ones, by a warp of this lane. Nothing is larger than
 * a NaN in the first position. */
template <uint32_t count, typename type>
__device__ inline void accel_argmax_of_row(int32_t *y, const type *row, int lane) {
  float most = -INFINITY;
  uint32_t best = count;
  for (uint32_t e = (uint32_t)lane; e < count; e += 32) {
    const float own = accel_float(row[e]);
    const bool better = own > most || (own == most && best == count);
    best = better ? e : best;
    most = better ? own : most;
  }
  accel_first_largest<count>(&most, &best);
  const float first = accel_float(row[0]);
  if (lane == 0) *y = first == first && best < count ? (int32_t)best : 0;
}

/* How many of index[count] are group g; of each block of `each` at most `capacity`, where that is not 0. By 256
 * threads. */
template <size_t count, size_t each, int32_t capacity>
__device__ inline int32_t accel_count_group(const int32_t *index, int32_t g) {
  int32_t all = 0;
  for (size_t first = 0; first < count; first += each) {
    int32_t own = 0;
    for (size_t i = threadIdx.x; i < each; i += 256) own += index[first + i] == g;
    own = accel_sum<256>(own);
    all += capacity == 0 || own < capacity ? own : capacity;
  }
  return all;
}

/* Counts in y[1 ... groups] become where what follows each starts; y[0] = 0. By one thread. */
template <size_t groups> __global__ void __launch_bounds__(1) accel_starts_of_counts(int32_t *y) {
  int32_t sum = y[0] = 0;
#pragma unroll 16
  for (size_t g = 0; g < groups; g++) y[g + 1] = sum += y[g + 1];
}

#endif
