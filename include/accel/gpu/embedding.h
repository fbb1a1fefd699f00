/* The gradient of an embedding. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_EMBEDDING_H
#define ACCEL_GPU_EMBEDDING_H

#include <stdint.h>

#include "functions.h"

/* Lists those of 1024 tokens, of which there are `end`, that are of the block's rows, every `stride`-th, in their
 * order: the row and the position of each, from `first` on. Gives how many. A block of 256 threads; all get it. */
template <unsigned end, unsigned classes, unsigned rows, unsigned stride>
__device__ inline unsigned accel_list_tokens(uint32_t *list, unsigned *counts, const int32_t *tokens, unsigned first) {
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned which[4], masks[4], own = 0;
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const unsigned at = first + warp * 128 + e * 32 + lane;
    const uint32_t token = at < end ? (uint32_t)tokens[at] : UINT32_MAX;
    which[e] = token < classes && token % stride == blockIdx.x ? token / stride : rows;
    masks[e] = __ballot_sync(0xffffffffu, which[e] < rows);
    own += __popc(masks[e]);
  }
  if (!__syncthreads_or(own > 0)) return 0;
  if (lane == 0) counts[warp] = own;
  __syncthreads();
  unsigned position = 0, count = 0;
  for (unsigned w = 0; w < 8; w++) {
    position += w < warp ? counts[w] : 0;
    count += counts[w];
  }
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const unsigned before = position + __popc(masks[e] & ((1u << lane) - 1));
    if (which[e] < rows) list[before % 1024] = which[e] * 1024 + warp * 128 + e * 32 + lane;
    position += __popc(masks[e]);
  }
  __syncthreads();
  return count;
}

/* dweight[classes][columns] (+)= the sum of dy[r][:] where tokens[r], of `end`, is the row: a block has `rows` of them,
 * every `stride`-th, and each of its 256 threads `each` of the columns of panel blockIdx.y. It lists their tokens
 * 1024 at a time, and adds up its columns along the list, eight on their way at a time. */
template <unsigned end, unsigned classes, size_t columns, unsigned rows, unsigned stride, int each, bool add,
          typename sums, typename slopes>
__device__ inline void accel_embedding_backward(sums *dweight, const slopes *dy, const int32_t *tokens) {
  __shared__ uint32_t list[1024];
  __shared__ unsigned counts[8];
  const size_t begin = (size_t)blockIdx.y * each * 256 + threadIdx.x;
  constexpr bool whole = columns % (each * 256) == 0;
  float sum[rows][each] = {{0.0f}};
  unsigned seen = 0;
  for (unsigned first = 0; first < end; first += 1024) {
    const unsigned count = accel_list_tokens<end, classes, rows, stride>(list, counts, tokens, first);
    if (count == 0) continue;
    for (unsigned i = 0; i < 1024; i += 8) {
      if (i >= count) break;
      float found[8][each];
#pragma unroll
      for (unsigned j = 0; j < 8; j++) {
        const unsigned r = first + (i + j < count ? list[(i + j) % 1024] % 1024 : end);
#pragma unroll
        for (int n = 0; n < each; n++) {
          const size_t c = begin + n * 256;
          found[j][n] = (whole || c < columns) && r < end ? accel_float(dy[r * columns + c]) : 0.0f;
        }
      }
#pragma unroll
      for (unsigned j = 0; j < 8; j++) {
        if (i + j >= count) break;
        const unsigned own_row = list[(i + j) % 1024] / 1024;
        if (add) seen |= 1u << own_row;
#pragma unroll
        for (unsigned row = 0; row < rows; row++)
          if (row == own_row)
#pragma unroll
            for (int n = 0; n < each; n++) sum[row][n] += found[j][n];
      }
    }
  }
#pragma unroll
  for (unsigned row = 0; row < rows; row++) {
    const unsigned v = row * stride + blockIdx.x;
    if (v >= classes || (add && (seen >> row & 1) == 0)) continue;
#pragma unroll
    for (int n = 0; n < each; n++) {
      const size_t c = begin + n * 256;
      if (whole || c < columns) accel_write<add>(dweight + v * columns + c, sum[row][n]);
    }
  }
}

#endif
