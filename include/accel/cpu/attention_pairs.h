/* The matmuls of attention_tiles.h over bfloat16, whose numbers come in pairs along the sum: rows t and t + 1 of an
 * operand are in one of twice its length. */
#ifndef ACCEL_CPU_ATTENTION_PAIRS_H
#define ACCEL_CPU_ATTENTION_PAIRS_H

#include "bf16.h"

/* to[column / 2][i] = the pairs of columns of from[i][2 * pairs], for the 32 rows of a block; pairs: a multiple of 16.
 */
static inline void accel_transpose_row_pairs(size_t pairs, const accel_bf16 *from, accel_bf16 (*to)[64]) {
  for (size_t d = 0; d < pairs; d += 16)
    for (size_t i = 0; i < 32; i += 16)
      accel_transpose_pairs(from + i * 2 * pairs + 2 * d, 2 * pairs, &to[d][2 * i], 64);
}

/* to[j / 2][column] = the pair of rows j and j + 1 of from[count][columns], which are `stride` apart, after the last
 * one zeros; rows of `to` have so many numbers. */
static inline __attribute__((always_inline)) void accel_pair_all_rows(size_t columns, size_t count,
                                                                      const accel_bf16 *from, size_t stride,
                                                                      accel_bf16 *to, size_t numbers) {
  size_t j = 0;
  for (; j + 2 <= count; j += 2)
    accel_pair_rows(columns, from + j * stride, from + (j + 1) * stride, to + j / 2 * numbers);
  if (j == count) return;
  memset(to + j / 2 * numbers, 0, numbers * sizeof *to);
  for (size_t d = 0; d < columns; d++) to[j / 2 * numbers + 2 * d] = from[j * stride + d];
}

/* to[key][query] = factor times the dot products. */
static inline __attribute__((always_inline)) void accel_score_pair_tiles(int tail, size_t depth, size_t count,
                                                                         size_t wide, const accel_bf16 *keys,
                                                                         size_t stride, accel_bf16 (*lanes)[64],
                                                                         float (*to)[32], float factor) {
  size_t j = 0;
  for (; j + 8 <= wide; j += 8)
    accel_pair_tile(8, 32, false, depth, keys + j * stride, stride, 1, lanes[0], 32, to[j], 32, factor);
  for (; j + 8 <= count; j += 8)
    accel_pair_tile(8, 16, false, depth, keys + j * stride, stride, 1, &lanes[0][32], 32, &to[j][16], 32, factor);
  if (tail > 0 && j < count)
    accel_pair_tile(tail, 32, false, depth, keys + j * stride, stride, 1, lanes[0], 32, to[j], 32, factor);
}

/* to[query][columns] += the sum over keys; weights and rows are by pairs of keys, of which rows[key / 2][2 * columns].
 */
static inline __attribute__((always_inline)) void accel_gather_pair_tiles(bool causal, size_t columns, size_t count,
                                                                          size_t diagonal, accel_bf16 (*weights)[64],
                                                                          const accel_bf16 *rows, float *to) {
  for (size_t i = 0; i < 32; i += 8) {
    const size_t seen = causal && diagonal + i + 8 < count ? diagonal + i + 8 : count;
    float *row = to + i * columns;
    size_t c = 0;
    for (; c + 32 <= columns; c += 32)
      accel_pair_tile(8, 32, true, seen, &weights[0][2 * i], 2, 32, rows + 2 * c, columns, row + c, columns, 1.0f);
    if (c < columns)
      accel_pair_tile(8, 16, true, seen, &weights[0][2 * i], 2, 32, rows + 2 * c, columns, row + c, columns, 1.0f);
  }
}

/* to[key][column] += the sum over queries, of 16 or 32 columns; rows by pairs of queries. */
static inline __attribute__((always_inline)) void
accel_scatter_pair_panel(bool causal, int tail, int width, size_t columns, size_t count, size_t diagonal,
                         accel_bf16 (*weights)[32], const accel_bf16 *rows, float *to, size_t stride) {
  size_t j = 0;
  for (; j + 8 <= count; j += 8) {
    const size_t i = causal && j > diagonal ? j - diagonal : 0;
    accel_pair_tile(8, width, true, 32 - i, &weights[j][i], 32, 1, rows + i * columns, columns, to + j * stride, stride,
                    1.0f);
  }
  if (tail > 0 && j < count) {
    const size_t i = causal && j > diagonal ? j - diagonal : 0;
    accel_pair_tile(tail, width, true, 32 - i, &weights[j][i], 32, 1, rows + i * columns, columns, to + j * stride,
                    stride, 1.0f);
  }
}

/* The same of all columns. */
static inline __attribute__((always_inline)) void
accel_scatter_pair_tiles(bool causal, int tail, size_t columns, size_t count, size_t diagonal,
                         accel_bf16 (*weights)[32], const accel_bf16 *rows, float *to, size_t stride) {
  size_t c = 0;
  for (; c + 32 <= columns; c += 32)
    accel_scatter_pair_panel(causal, tail, 32, columns, count, diagonal, weights, rows + 2 * c, to + c, stride);
  if (c < columns)
    accel_scatter_pair_panel(causal, tail, 16, columns, count, diagonal, weights, rows + 2 * c, to + c, stride);
}

#endif
