/* Elements of 16 bits in IEEE 754 binary16, on a GPU. A program includes this before the other headers of kernels,
 * whose templates round to its type. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_F16_H
#define ACCEL_GPU_F16_H

#include <accel/gpu/launch.h>
#include <cuda_fp16.h>

typedef __half accel_f16;

/* x as a float. */
__device__ inline float accel_widen(accel_f16 x) {
  return __half2float(x);
}

/* x rounded to the nearest, ties to even. */
__device__ inline accel_f16 accel_narrow(float x) {
  return __float2half_rn(x);
}

#endif
