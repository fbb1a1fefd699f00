/* Matmuls by tensor cores (nvcuda::wmma; sm_80 and up). A block of 128 threads has 128 rows and 128 columns of a
 * matmul, a warp 64 of each; both factors come in slabs of 64 bytes of depth, one in use and one under way. For C++
 * that nvcc compiles. */
#ifndef ACCEL_GPU_TENSOR_CORES_H
#define ACCEL_GPU_TENSOR_CORES_H

#include <cuda_pipeline.h>
#include <mma.h>

#include "functions.h"
#include "pack.h"
#include "tiles.h"

/* What tensor cores make of a type, and the depth of one of their matmuls, which has 16 rows and columns. */
template <typename type> struct accel_core {
  typedef type number;
  static constexpr int depth = 16;
};
template <> struct accel_core<float> {
  typedef nvcuda::wmma::precision::tf32 number;
  static constexpr int depth = 8;
};

/* The layout of a matrix, as its fragments call it. */
template <bool by_rows> struct accel_layout_of {
  typedef nvcuda::wmma::row_major type;
};
template <> struct accel_layout_of<false> {
  typedef nvcuda::wmma::col_major type;
};

/* A warp's part of a matmul. */
template <typename type> struct accel_sums {
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, accel_core<type>::depth, float> items[4][4];
};

/* Makes sums zero. */
template <typename type> __device__ inline void accel_clear(accel_sums<type> *sums) {
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) nvcuda::wmma::fill_fragment(sums->items[i][j], 0.0f);
}

/* A part of a factor: 128 lines of 64 bytes along the depth, each 80 bytes long, or 64 bytes of depth in lines of 128
 * elements, each 136 long. */
template <typename type> struct alignas(128) accel_slab {
  type items[128 * 80 / sizeof(type)];
};

/* Begins to copy a part of a matrix into a slab, the one at `tile` and at `deep` along the depth, `width` neighbours at
 * a time. The lengths of lines, and that eight threads write together to lines four apart, keep any two threads, and
 * what tensor cores read, out of one bank. */
template <int width, bool along, typename type, typename matrix>
__device__ inline void accel_bring(accel_slab<type> *slab, const matrix *from, size_t tile, size_t deep) {
  constexpr int depth = 64 / (int)sizeof(type), lines = along ? 128 : depth, packs = (along ? depth : 128) / width;
  constexpr int pitch = along ? 80 / (int)sizeof(type) : 136;
#pragma unroll 4
  for (int n = 0; n < lines * packs / 128; n++) {
    const int at = n * 128 + (int)threadIdx.x, position = at % packs * width;
    const int line = along ? at / packs / 8 * 8 + at / packs % 2 * 4 + at / packs % 8 / 2 : at / packs;
    const size_t row = (along ? tile : deep) + line, column = (along ? deep : tile) + position;
    const bool counts = matrix::whole || (row >= from->first && row < from->end);
    if (counts && row < matrix::rows && column < matrix::columns) {
      if constexpr (width * sizeof(type) < 4)
        slab->items[line * pitch + position] = from->items[row * matrix::columns + column];
      else
        __pipeline_memcpy_async(slab->items + line * pitch + position, from->items + row * matrix::columns + column,
                                width * sizeof(type));
    } else {
      accel_store(slab->items + line * pitch + position, accel_pack<type, width>{});
    }
  }
}

/* sums += left times right, over a slab's depth. */
template <bool left_along, bool right_along, typename type>
__device__ inline void accel_multiply_slabs(accel_sums<type> *sums, const accel_slab<type> *left,
                                            const accel_slab<type> *right) {
  using namespace nvcuda;
  typedef typename accel_core<type>::number number;
  constexpr int depth = sizeof(type) == sizeof(float) ? 8 : 16, along = 80 / (int)sizeof(type);
  constexpr int a_pitch = left_along ? along : 136, b_pitch = right_along ? along : 136;
  const int above = (int)threadIdx.x / 64 * 64, before = (int)threadIdx.x / 32 % 2 * 64;
#pragma unroll
  for (int d = 0; d < 64 / (int)sizeof(type); d += depth) {
    wmma::fragment<wmma::matrix_a, 16, 16, depth, number, typename accel_layout_of<left_along>::type> a[4];
    wmma::fragment<wmma::matrix_b, 16, 16, depth, number, typename accel_layout_of<!right_along>::type> b[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int row = above + i * 16, column = before + i * 16;
      wmma::load_matrix_sync(a[i], left->items + (left_along ? row * a_pitch + d : d * a_pitch + row), a_pitch);
      wmma::load_matrix_sync(b[i], right->items + (right_along ? column * b_pitch + d : d * b_pitch + column), b_pitch);
      if constexpr (sizeof(type) == sizeof(float)) {
        constexpr int elements = sizeof a[0].x / sizeof(float);
        for (int e = 0; e < elements; e++) a[i].x[e] = wmma::__float_to_tf32(a[i].x[e]);
        for (int e = 0; e < elements; e++) b[i].x[e] = wmma::__float_to_tf32(b[i].x[e]);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) wmma::mma_sync(sums->items[i][j], a[i], b[j], sums->items[i][j]);
  }
}

/* sums += left times right over `length` of the depth, at most `most`, at `from`, for 128 rows of left at `above` and
 * 128 columns of right at `before`. left_along: left's lines go along the depth; right_along: right's do. */
template <bool left_along, bool right_along, int width, size_t most, typename type, typename left_matrix,
          typename right_matrix>
__device__ inline void accel_add_gemm(accel_sums<type> *sums, const left_matrix *left, const right_matrix *right,
                                      size_t above, size_t before, size_t from, size_t length) {
  constexpr size_t depth = 64 / sizeof(type);
  __shared__ accel_slab<type> a[2], b[2];
  accel_bring<width, left_along>(&a[0], left, above, from);
  accel_bring<width, right_along>(&b[0], right, before, from);
  __pipeline_commit();
  for (size_t deep = 0; deep < most; deep += depth) {
    if (deep >= length) break;
    const int at = (int)(deep / depth % 2);
    if (deep + depth < length) {
      accel_bring<width, left_along>(&a[1 - at], left, above, from + deep + depth);
      accel_bring<width, right_along>(&b[1 - at], right, before, from + deep + depth);
    }
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    accel_multiply_slabs<left_along, right_along>(sums, &a[at], &b[at]);
    __syncthreads();
  }
}

/* 16 rows of 16 sums of a warp, in shared memory, each `pitch` after the one before. */
struct alignas(128) accel_patch {
  static constexpr int pitch = 20;
  float items[16 * pitch];
};

/* y [rows][columns] (+)= the sums, 128 rows at `above`, those before `end`, and 128 columns at `before`. Lanes have
 * neighbours of a line; that those lines are four apart keeps them out of one bank. */
template <bool add, int width, size_t rows, size_t columns, typename result, typename type>
__device__ inline void accel_store_sums(result *y, const accel_sums<type> *sums, size_t above, size_t before,
                                        size_t end) {
  constexpr int most = 16 / (int)sizeof(result), each = width < most ? width : most; /* in one access */
  constexpr int pitch = accel_patch::pitch, packs = 16 / each, part = each < 4 ? each : 4;
  __shared__ accel_patch patches[4];
  float *patch = patches[threadIdx.x / 32].items;
  const size_t first = above + threadIdx.x / 64 * 64, left = before + threadIdx.x / 32 % 2 * 64;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      nvcuda::wmma::store_matrix_sync(patch, sums->items[i][j], pitch, nvcuda::wmma::mem_row_major);
      __syncwarp();
#pragma unroll
      for (int n = 0; n < 8 / each; n++) {
        const int at = n * 32 + (int)threadIdx.x % 32, position = at % packs * each;
        const int line = at / packs / 8 * 8 + at / packs % 2 * 4 + at / packs % 8 / 2;
        const size_t row = first + i * 16 + line, column = left + j * 16 + position;
        if (row < end && row < rows && column < columns) {
          accel_pack<result, each> to = {};
          if constexpr (add) to = accel_load<each>(y + row * columns + column);
          for (int e = 0; e < each; e += part) {
            const accel_pack<float, part> some = accel_load<part>(patch + line * pitch + position + e);
            for (int m = 0; m < part; m++)
              accel_put(to.items + e + m, add ? accel_float(to.items[e + m]) + some.items[m] : some.items[m]);
          }
          accel_store(y, row * columns + column, to);
        }
      }
      __syncwarp();
    }
}

#endif
