/* HIP: the words of CUDA C++ that kernels use and HIP lacks. accel/gpu/launch.h includes it where hipcc compiles. */
#ifndef ACCEL_GPU_HIP_H
#define ACCEL_GPU_HIP_H

#include <hip/hip_runtime.h>

/* A warp has 32 lanes: a wave of 64 is two of them, side by side. */
template <typename type> __device__ inline type __shfl_xor_sync(unsigned, type x, int lanes) {
  return __shfl_xor(x, lanes, 32);
}
template <typename type> __device__ inline type __shfl_down_sync(unsigned, type x, unsigned lanes) {
  return __shfl_down(x, lanes, 32);
}
template <typename type> __device__ inline type __shfl_up_sync(unsigned, type x, unsigned lanes) {
  return __shfl_up(x, lanes, 32);
}
template <typename type> __device__ inline type __shfl_sync(unsigned, type x, int lane) {
  return __shfl(x, lane, 32);
}
__device__ inline unsigned __ballot_sync(unsigned, int predicate) {
  return (unsigned)(__ballot(predicate) >> (__lane_id() & 32));
}
__device__ inline void __syncwarp(unsigned = 0) {
  __builtin_amdgcn_wave_barrier();
}

#ifndef __grid_constant__
#define __grid_constant__
#endif

/* accel_stream is HIP's. */
#define CUstream_st ihipStream_t

#endif
