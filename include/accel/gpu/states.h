/* Optimizers' states in fewer bits, in kernels. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_STATES_H
#define ACCEL_GPU_STATES_H

#include "functions.h"

#include "../states.h"

/* Fills a map of the block's shared memory, a number by each of 256 threads. */
__device__ inline void accel_fill_map(struct accel_map *map, bool is_signed) {
  static const double tens[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0};
  const int code = (int)threadIdx.x, zero = is_signed ? 127 : 0, least = is_signed ? 1 : 2;
  const int distance = code < zero ? zero - code : code - zero, number = distance + least - 1;
  double ten = tens[0];
  int numbers = least;
#pragma unroll
  for (int power = 1; power < 7; power++) {
    const bool reaches = number >= least << power;
    ten = reaches ? tens[power] : ten;
    numbers = reaches ? least << power : numbers;
  }
  const float size = (float)(ten * (0.1 + 0.9 * (number - numbers + 0.5) / numbers));
  const float value = distance == 0 ? 0.0f : number >= least << 7 ? 1.0f : size;
  map->values[code] = code < zero ? -value : value;
  if (code == 0) {
    map->zero = zero;
    map->least = least;
  }
  __syncthreads();
  if (code < 8) {
    const int first = zero + 1 + least * ((1 << code) - 1);
    map->edges[code] = 0.5f * (map->values[first - 1] + map->values[first]);
  }
  __syncthreads();
}

#endif
