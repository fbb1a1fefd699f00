/* Matmuls of groups of rows, whose extents are known on the device alone, in float32: a block of 64 threads has 64 rows
 * and 64 columns of a matmul, a thread 8 of each. tensor_cores.h has the same functions over tensor cores. For C++ that
 * nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_TILES_H
#define ACCEL_GPU_TILES_H

#include "functions.h"
#include "group.h"
#include "pack.h"

/* ---- Groups ---- */

/* The group of a block, and where its rows begin and the group's rows end: tiles of `tile` rows, of which each group
 * begins one of its own, and after the last group what is of none, whose number is `groups`. */
template <int groups, size_t rows, size_t tile>
__device__ inline int accel_find_tile(const int32_t *starts, size_t *above, size_t *end) {
  size_t at = blockIdx.x, first = 0, last = 0;
  int g = 0;
  for (; g < groups; g++) {
    first = (size_t)starts[g];
    last = (size_t)starts[g + 1];
    const size_t tiles = (last - first + (tile - 1)) / tile;
    if (at < tiles) break;
    at -= tiles;
  }
  if (g == groups) {
    first = last;
    last = rows;
  }
  *above = first + at * tile;
  *end = last;
  return g;
}

/* The group that a row is of, from 1, or 0, by the lanes of a warp. All get it. */
template <int groups> __device__ inline int accel_group_of(size_t row, const int32_t *starts) {
  int group = 0;
  for (int g = (int)threadIdx.x % 32; g < groups; g += 32) {
    const size_t first = (size_t)starts[g], end = (size_t)starts[g + 1];
    group += first <= row && row < end ? g + 1 : 0;
  }
  return accel_sum<32>(group);
}

/* The dot product of two vectors, which a warp takes `width` neighbours at a time. All lanes get it. */
template <int width, size_t count, typename type>
__device__ inline float accel_dot(const type *left, const type *right) {
  float sum = 0.0f;
  for (size_t c = threadIdx.x % 32 * width; c < count; c += 32 * width) {
    const accel_pack<type, width> a = accel_load<width>(left + c), b = accel_load<width>(right + c);
#pragma unroll
    for (int e = 0; e < width; e++) sum += accel_float(a.items[e]) * accel_float(b.items[e]);
  }
  return accel_sum<32>(sum);
}

/* ---- Tiles ---- */

/* A matrix, of which the rows from `first` on, before `end`, count, or all if it is whole; all others are 0. */
template <typename number, size_t row_count, size_t column_count, bool is_whole> struct accel_matrix {
  typedef number type;
  static constexpr size_t rows = row_count, columns = column_count;
  static constexpr bool whole = is_whole;
  const type *items;
  size_t first, end;
};

/* A thread's part of a matmul. */
struct accel_float_sums {
  float items[8][8];
};

/* A part of a factor: 16 of the depth, of which each has 64 elements. */
struct accel_float_slab {
  accel_pack<float, 4> items[16][17];
};

/* Makes sums zero. */
__device__ inline void accel_clear(accel_float_sums *sums) {
  *sums = {};
}

/* Copies a part of a matrix into a slab, the one at `tile` and at `deep` along the depth. along: the matrix's rows go
 * along the depth. */
template <bool along, typename matrix>
__device__ inline void accel_bring(accel_float_slab *slab, const matrix *from, size_t tile, size_t deep) {
  constexpr size_t rows = matrix::rows, columns = matrix::columns;
  constexpr bool whole_rows = matrix::whole && rows % (along ? 64 : 16) == 0,
                 whole_columns = columns % (along ? 16 : 64) == 0;
  for (size_t n = 0; n < 16; n++) {
    const size_t i = along ? n * 4 + threadIdx.x / 16 : threadIdx.x, d = along ? threadIdx.x % 16 : n;
    const size_t row = along ? tile + i : deep + d, column = along ? deep + d : tile + i;
    const bool counts = matrix::whole || row < from->end;
    slab->items[d][i / 4].items[i % 4] = counts && (whole_rows || row < rows) && (whole_columns || column < columns)
                                             ? from->items[row * columns + column]
                                             : 0.0f;
  }
}

/* sums += left times right over `length` of the depth, at most `most`, at `from`, for 64 rows of left at `above` and 64
 * columns of right at `before`. left_along: left's rows go along the depth; right_along: right's do. */
template <bool left_along, bool right_along, int width, size_t most, typename left_matrix, typename right_matrix>
__device__ inline void accel_add_gemm(accel_float_sums *sums, const left_matrix *left, const right_matrix *right,
                                      size_t above, size_t before, size_t from, size_t length) {
  __shared__ accel_float_slab a, b;
  const size_t down = threadIdx.x / 8, across = threadIdx.x % 8;
  for (size_t deep = 0; deep < most; deep += 16) {
    if (deep >= length) break;
    __syncthreads();
    accel_bring<left_along>(&a, left, above, from + deep);
    accel_bring<right_along>(&b, right, before, from + deep);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < 16; d++) {
      const accel_pack<float, 4> rows[2] = {a.items[d][down], a.items[d][down + 8]};
      const accel_pack<float, 4> columns[2] = {b.items[d][across], b.items[d][across + 8]};
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) sums->items[i][j] += rows[i / 4].items[i % 4] * columns[j / 4].items[j % 4];
    }
  }
}

/* y [rows][columns] (+)= the sums, 64 rows at `above`, those before `end`, and 64 columns at `before`. */
template <bool add, int width, size_t rows, size_t columns>
__device__ inline void accel_store_sums(float *y, const accel_float_sums *sums, size_t above, size_t before,
                                        size_t end) {
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const size_t row = above + (size_t)(i / 4 * 32 + i % 4) + threadIdx.x / 8 * 4;
      const size_t column = before + (size_t)(j / 4 * 32 + j % 4) + threadIdx.x % 8 * 4;
      if (row < end && row < rows && (columns % 64 == 0 || column < columns)) {
        if constexpr (add)
          y[row * columns + column] += sums->items[i][j];
        else
          y[row * columns + column] = sums->items[i][j];
      }
    }
}

#endif
