/* Elements of 16 bits in bfloat16, on a GPU. A program includes this before the other headers of kernels, whose
 * templates round to its type. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_BF16_H
#define ACCEL_GPU_BF16_H

#include <accel/gpu/launch.h>
#include <cuda_bf16.h>

typedef __nv_bfloat16 accel_bf16;

/* x as a float. */
__device__ inline float accel_widen(accel_bf16 x) {
  return __bfloat162float(x);
}

/* x rounded to the nearest, ties to even. */
__device__ inline accel_bf16 accel_narrow(float x) {
  return __float2bfloat16_rn(x);
}

#endif
