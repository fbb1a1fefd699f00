/* Positions sorted by group. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_ORDER_H
#define ACCEL_GPU_ORDER_H

#include <stdint.h>

#include <accel/gpu/launch.h>

/* Writes those positions of of[matrices][rows][choices], or their rows, where it is own_group, in the order of priority
 * into y[count] from `next` on. Of a matrix it takes at most `capacity`, where that is not 0, and marks in
 * late[position] whether there was no room: all first choices come first. A block of so many threads. */
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

#endif
