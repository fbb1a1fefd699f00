/* The matmuls of a block of attention, by tiles that registers hold: of 32 queries and up to `count` keys. Where
 * attention is causal (a constant), query i sees the block's keys up to diagonal + i. Columns are whole lanes,
 * multiples of 16. */
#ifndef ACCEL_CPU_ATTENTION_TILES_H
#define ACCEL_CPU_ATTENTION_TILES_H

#include <stdbool.h>
#include <stddef.h>

#include "tiles.h"

/* to[column][i] = factor from[i][column] for the 32 rows of a block. */
static inline void accel_transpose_rows(size_t columns, float factor, const float *from, float (*to)[32]) {
  for (size_t d = 0; d < columns; d += 16)
    for (size_t i = 0; i < 32; i += 16) accel_transpose(factor, from + i * columns + d, columns, &to[d][i], 32);
}

/* to[key][query] = the dot products of keys[count][depth], whose rows are `stride` apart, with the queries that are
 * transposed in lanes[depth][32]; of keys from `wide` on, with queries from 16 on alone. tail: all keys of a kernel,
 * modulo 8. */
static inline __attribute__((always_inline)) void accel_score_tiles(int tail, size_t depth, size_t count, size_t wide,
                                                                    const float *keys, size_t stride,
                                                                    float (*lanes)[32], float (*to)[32]) {
  size_t j = 0;
  for (; j + 8 <= wide; j += 8) accel_tile(8, 32, false, depth, keys + j * stride, stride, 1, lanes[0], 32, to[j], 32);
  for (; j + 8 <= count; j += 8)
    accel_tile(8, 16, false, depth, keys + j * stride, stride, 1, &lanes[0][16], 32, &to[j][16], 32);
  if (tail > 0 && j < count) accel_tile(tail, 32, false, depth, keys + j * stride, stride, 1, lanes[0], 32, to[j], 32);
}

/* to[query][columns] += the sum over keys of weights[key][query] rows[key][column]; rows are `stride` apart. */
static inline __attribute__((always_inline)) void accel_gather_tiles(bool causal, size_t columns, size_t count,
                                                                     size_t diagonal, float (*weights)[32],
                                                                     const float *rows, size_t stride, float *to) {
  for (size_t i = 0; i < 32; i += 8) {
    const size_t seen = causal && diagonal + i + 8 < count ? diagonal + i + 8 : count;
    size_t c = 0;
    for (; c + 32 <= columns; c += 32)
      accel_tile(8, 32, true, seen, &weights[0][i], 1, 32, rows + c, stride, to + i * columns + c, columns);
    if (c < columns)
      accel_tile(8, 16, true, seen, &weights[0][i], 1, 32, rows + c, stride, to + i * columns + c, columns);
  }
}

/* to[key][column] += the sum over queries of weights[key][query] rows[query][columns], of 16 or 32 columns; rows of
 * `to` are `stride` apart, tail is as above. */
static inline __attribute__((always_inline)) void accel_scatter_panel(bool causal, int tail, int width, size_t columns,
                                                                      size_t count, size_t diagonal,
                                                                      float (*weights)[32], const float *rows,
                                                                      float *to, size_t stride) {
  size_t j = 0;
  for (; j + 8 <= count; j += 8) {
    const size_t i = causal && j > diagonal ? j - diagonal : 0;
    accel_tile(8, width, true, 32 - i, &weights[j][i], 32, 1, rows + i * columns, columns, to + j * stride, stride);
  }
  if (tail > 0 && j < count) {
    const size_t i = causal && j > diagonal ? j - diagonal : 0;
    accel_tile(tail, width, true, 32 - i, &weights[j][i], 32, 1, rows + i * columns, columns, to + j * stride, stride);
  }
}

/* The same of all columns. */
static inline __attribute__((always_inline)) void accel_scatter_tiles(bool causal, int tail, size_t columns,
                                                                      size_t count, size_t diagonal,
                                                                      float (*weights)[32], const float *rows,
                                                                      float *to, size_t stride) {
  size_t c = 0;
  for (; c + 32 <= columns; c += 32)
    accel_scatter_panel(causal, tail, 32, columns, count, diagonal, weights, rows + c, to + c, stride);
  if (c < columns) accel_scatter_panel(causal, tail, 16, columns, count, diagonal, weights, rows + c, to + c, stride);
}

#endif
