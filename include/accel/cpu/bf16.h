/* Elements of 16 bits in bfloat16, on a processor: one by one, and by whole vector registers. */
#ifndef ACCEL_CPU_BF16_H
#define ACCEL_CPU_BF16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tiles.h"

#if defined __AVX512BF16__
#include <immintrin.h>
#endif

/* bfloat16: the upper half of a float; rounded to the nearest, ties to even. A NaN stays one. */
typedef uint16_t accel_bf16;
static inline float accel_widen(accel_bf16 x) {
  const uint32_t bits = (uint32_t)x << 16;
  float y;
  memcpy(&y, &bits, sizeof y);
  return y;
}
static inline accel_bf16 accel_narrow(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits = x == x ? bits + 0x7fffu + (bits >> 16 & 1u) : bits | 0x400000u;
  return (accel_bf16)(bits >> 16);
}

/* 32 numbers, rounded to bfloat16 as accel_narrow does it; AVX512-BF16 takes those below the normal ones as 0. */
static inline void accel_narrow_row(const float from[static 32], accel_bf16 to[static 32]) {
#if defined __AVX512BF16__
  _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 16), _mm512_loadu_ps(from)));
#else
#pragma omp simd
  for (size_t i = 0; i < 32; i++) to[i] = accel_narrow(from[i]);
#endif
}

/* c[rows][columns] = factor a b, or += it, with rows and columns that registers hold. Numbers of bfloat16 come in pairs
 * along the sum, which is of floats; AVX512-BF16 takes those below the normal ones as 0. */
static inline __attribute__((always_inline)) void
accel_small_pair_tile(int rows, int columns, bool add, size_t depth, const accel_bf16 *a, size_t a_row, size_t a_step,
                      const accel_bf16 *b, size_t b_row, float *c, size_t c_row, float factor) {
  accel_lanes sum[ACCEL_TILE_ROWS][ACCEL_TILE_COLUMNS / ACCEL_LANES];
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < columns / ACCEL_LANES; j++) sum[i][j] = (accel_lanes){0.0f};
  for (size_t t = 0; t < depth; t += 2)
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
      uint32_t pair;
      memcpy(&pair, a + (size_t)i * a_row + t * a_step, sizeof pair);
#pragma GCC unroll 8
      for (int j = 0; j < columns / ACCEL_LANES; j++) {
        const accel_bf16 *pairs_of_b = b + t * b_row + 2 * j * ACCEL_LANES;
#if defined __AVX512BF16__
        sum[i][j] = (accel_lanes)_mm512_dpbf16_ps((__m512)sum[i][j], (__m512bh)_mm512_set1_epi32((int)pair),
                                                  (__m512bh)_mm512_loadu_si512(pairs_of_b));
#else
        uint32_t both __attribute__((vector_size(sizeof(accel_lanes))));
        memcpy(&both, pairs_of_b, sizeof both);
        sum[i][j] += accel_widen((accel_bf16)pair) * (accel_lanes)(both << 16);
        sum[i][j] += accel_widen((accel_bf16)(pair >> 16)) * (accel_lanes)(both & 0xffff0000u);
#endif
      }
    }
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < columns / ACCEL_LANES; j++) {
      accel_lanes *to = (accel_lanes *)(c + (size_t)i * c_row + j * ACCEL_LANES);
      *to = add ? *to + factor * sum[i][j] : factor * sum[i][j];
    }
}

/* The same for up to 8 rows and for 16 or 32 columns. For even t, the pair of a[i][t] and a[i][t + 1] is at
 * a + i * a_row + t * a_step, that of b[t][j] and b[t + 1][j] at b + t * b_row + 2 j. After an odd depth are zeros.
 * rows, columns, add and factor are constants where it is inlined. */
static inline __attribute__((always_inline)) void accel_pair_tile(int rows, int columns, bool add, size_t depth,
                                                                  const accel_bf16 *a, size_t a_row, size_t a_step,
                                                                  const accel_bf16 *b, size_t b_row, float *c,
                                                                  size_t c_row, float factor) {
#pragma GCC unroll 2
  for (int i = 0; i < rows; i += ACCEL_TILE_ROWS)
#pragma GCC unroll 2
    for (int j = 0; j < columns; j += ACCEL_TILE_COLUMNS)
      accel_small_pair_tile(rows - i < ACCEL_TILE_ROWS ? rows - i : ACCEL_TILE_ROWS,
                            columns - j < ACCEL_TILE_COLUMNS ? columns - j : ACCEL_TILE_COLUMNS, add, depth,
                            a + (size_t)i * a_row, a_row, a_step, b + 2 * j, b_row, c + (size_t)i * c_row + j, c_row,
                            factor);
}

/* to[c] = the pairs of from[0 ... 15] at 2 c, for 16 of these; rows are so many elements apart. */
static inline void accel_transpose_pairs(const accel_bf16 *from, size_t from_row, accel_bf16 *to, size_t to_row) {
#if defined ACCEL_SHUFFLES
  accel_lanes x[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++) memcpy(&x[r], from + (size_t)r * from_row, sizeof x[r]);
  accel_transpose_lanes(x);
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++) memcpy(to + (size_t)r * to_row, &x[r], sizeof x[r]);
#else
  for (size_t c = 0; c < 16; c++)
    for (size_t r = 0; r < 16; r++) memcpy(to + c * to_row + 2 * r, from + r * from_row + 2 * c, 4);
#endif
}

/* to[c] = the pair of low[c] and high[c]. */
static inline void accel_pair_rows(size_t columns, const accel_bf16 *restrict low, const accel_bf16 *restrict high,
                                   accel_bf16 *restrict to) {
#pragma omp simd
  for (size_t c = 0; c < columns; c++) {
    to[2 * c] = low[c];
    to[2 * c + 1] = high[c];
  }
}

#endif
