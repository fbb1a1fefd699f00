/* Launch, on the processor: what trainer.cu needs of CUDA C++, so that its kernels run as plain C++, one block after
 * the other. The threads of a block take turns: each runs until it waits for others, at a barrier or in a shuffle, on a
 * stack of its own. An oracle of the kernels' arithmetic and of their barriers, not of their speed. */
#ifndef ACCEL_GPU_LAUNCH_H
#define ACCEL_GPU_LAUNCH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tuple>
#include <utility>

#include <accel/gpu/device.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static /* one block runs at a time */

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

/* Of the thread at hand, and of the launch. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

/* Waits for all threads of the block that have not ended. */
void __syncthreads(void);

/* The same; whether one of them has a predicate that is not 0. */
int __syncthreads_or(int predicate);

/* Waits for all threads of the warp that have not ended. */
void __syncwarp(unsigned mask = 0xffffffffu);

/* 8 bytes of each lane of the warp at hand, for its next exchange: one of two rows by turns, so that one barrier is
 * enough, as no lane comes to the exchange after the next before all have read this one. */
uint64_t *host_lanes(void);

template <typename type> static inline type __shfl_sync(unsigned, type x, int lane) {
  static_assert(sizeof(type) <= 8, "a lane has 8 bytes");
  uint64_t *const lanes = host_lanes();
  memcpy(lanes + threadIdx.x % 32, &x, sizeof x);
  __syncwarp();
  memcpy(&x, lanes + lane, sizeof x);
  return x;
}
template <typename type> static inline type __shfl_xor_sync(unsigned mask, type x, int distance) {
  return __shfl_sync(mask, x, (int)(threadIdx.x % 32) ^ distance);
}
template <typename type> static inline type __shfl_down_sync(unsigned mask, type x, int distance) {
  const int lane = (int)(threadIdx.x % 32) + distance;
  return __shfl_sync(mask, x, lane < 32 ? lane : (int)(threadIdx.x % 32));
}
template <typename type> static inline type __shfl_up_sync(unsigned mask, type x, int distance) {
  const int lane = (int)(threadIdx.x % 32) - distance;
  return __shfl_sync(mask, x, lane >= 0 ? lane : (int)(threadIdx.x % 32));
}
static inline unsigned __ballot_sync(unsigned, int predicate) {
  unsigned found = 0;
  uint64_t *const lanes = host_lanes();
  lanes[threadIdx.x % 32] = predicate != 0;
  __syncwarp();
  for (int lane = 0; lane < 32; lane++) found |= (unsigned)lanes[lane] << lane;
  return found;
}
/* Threads take turns. */
static inline unsigned long long atomicAdd(unsigned long long *to, unsigned long long x) {
  const unsigned long long before = *to;
  *to += x;
  return before;
}
static inline int __ffs(unsigned x) {
  return __builtin_ffs((int)x);
}
static inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
static inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  return (uint64_t)((unsigned __int128)a * b >> 64);
}
static inline uint32_t __umulhi(uint32_t a, uint32_t b) {
  return (uint32_t)((uint64_t)a * b >> 32);
}

/* Runs all threads of all blocks: `run` once for each, which reads the variables above. */
void host_run(const char *call, dim3 grid, dim3 block, void (*run)(const void *arguments), const void *arguments);

/* Puts work into a stream: `run` is called with a copy of the arguments, when the stream comes to it. */
void host_launch(enum accel_stream_name stream, const char *call, void (*run)(const void *arguments),
                 const void *arguments, size_t bytes);

#define accel_launch(...) accel_launch_as(ACCEL_COMPUTE, #__VA_ARGS__, __VA_ARGS__)
#define accel_launch_in(stream, ...) accel_launch_as(stream, #__VA_ARGS__, __VA_ARGS__)

template <typename... parameters> struct host_call {
  const char *name;
  dim3 grid, block;
  void (*kernel)(parameters...);
  std::tuple<parameters...> arguments;
};

template <typename... parameters, typename... types>
static inline void accel_launch_as(enum accel_stream_name stream, const char *name, void (*kernel)(parameters...),
                                   dim3 grid, dim3 block, types... arguments) {
  using call = host_call<parameters...>;
  call made = {name, grid, block, kernel, std::tuple<parameters...>(static_cast<parameters>(arguments)...)};
  const auto all = [](const void *copied) {
    const call *of = (const call *)copied;
    const auto thread = [](const void *same) {
      const call *mine = (const call *)same;
      std::apply(mine->kernel, mine->arguments);
    };
    host_run(of->name, of->grid, of->block, thread, copied);
  };
  host_launch(stream, name, all, &made, sizeof made);
}

#endif
