/* Rows of groups, as ranks exchange them, and sums over ranks in the order of a tree. For C++ that nvcc or hipcc
 * compiles. */
#ifndef ACCEL_GPU_EXCHANGE_H
#define ACCEL_GPU_EXCHANGE_H

#include "functions.h"

/* own[e] = how many rows of all ranks are of this rank's groups before e. all[ranks][groups + 1]: where the groups
 * start in each rank's `rows` rows; a rank has `each` groups. */
template <int32_t ranks, int32_t groups, int32_t each, int32_t rows>
__device__ inline void accel_own_starts(int32_t *own, const int32_t *all, int32_t rank) {
  const int32_t e = (int32_t)(blockIdx.x * 256 + threadIdx.x);
  if (e > each) return;
  int32_t before = 0;
  for (int32_t r = 0; r < ranks; r++)
    before += all[r * (groups + 1) + rank * each + e] - all[r * (groups + 1) + rank * each];
  own[e] = before < 0 ? 0 : before < ranks * rows ? before : ranks * rows;
}

/* Row blockIdx.x of to[][columns] becomes one of from[limit][columns], or 0. Where rows are collected, `from` has those
 * of this rank's groups, group by group, of each those of the first rank first, and `to` the rows of all ranks at their
 * positions; else it is the reverse. By a block of `threads`; `all` is as above. */
template <bool collects, int32_t ranks, int32_t groups, int32_t rows, size_t columns, int32_t limit, size_t threads,
          typename result, typename type>
__device__ inline void accel_take_row(result *to, const type *from, const int32_t *all, int32_t rank) {
  constexpr int32_t each = groups / ranks;
  const int32_t n = (int32_t)blockIdx.x;
  int32_t before = 0, row = -1;
  for (int32_t e = 0; e < each; e++)
    for (int32_t r = 0; r < ranks; r++) {
      const int32_t first = all[r * (groups + 1) + rank * each + e];
      const int32_t count = all[r * (groups + 1) + rank * each + e + 1] - first;
      const int32_t at = collects ? n % rows - first : n - before;
      const bool own = (!collects || r == n / rows) && at >= 0 && at < count;
      row = own ? (collects ? before : r * rows + first) + at : row;
      before += count;
    }
  const size_t at = row < 0 ? 0 : row < limit ? row : limit - 1;
  for (size_t c = threadIdx.x; c < columns; c += threads)
    accel_put(to + n * columns + c, row >= 0 ? accel_float(from[at * columns + c]) : 0.0f);
}

/* The sum of as many values, in a tree's order: those that are half their number apart first, then those a quarter
 * apart, and so on. It overwrites them. */
template <int count, typename number> __device__ inline number accel_sum_by_tree(number values[count]) {
#pragma unroll
  for (int half = count / 2; half > 0; half /= 2)
#pragma unroll
    for (int r = 0; r < half; r++) values[r] += values[r + half];
  return values[0];
}

#endif
