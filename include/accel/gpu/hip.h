/* HIP: the words of CUDA C++ that kernels use and HIP lacks. accel/gpu/launch.h includes it where hipcc compiles. */
#ifndef ACCEL_GPU_HIP_H
#define ACCEL_GPU_HIP_H

#include <hip/hip_runtime.h>

/* A warp has 32 lanes: a wave of 64 is two of them, side by side. Macros, as later versions of HIP have functions of
 * these names for whole waves. */
#define __shfl_sync(mask, x, lane) __shfl(x, lane, 32)
#define __shfl_xor_sync(mask, x, lanes) __shfl_xor(x, lanes, 32)
#define __shfl_up_sync(mask, x, lanes) __shfl_up(x, lanes, 32)
#define __shfl_down_sync(mask, x, lanes) __shfl_down(x, lanes, 32)
#define __ballot_sync(mask, predicate) ((unsigned)(__ballot(predicate) >> (__lane_id() & 32)))
#define __syncwarp() accel_sync_warp()

/* What lanes wrote before it, others read after it. */
__device__ inline void accel_sync_warp(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

#ifndef __grid_constant__
#define __grid_constant__
#endif

/* accel_stream is HIP's. */
#define CUstream_st ihipStream_t

#endif
