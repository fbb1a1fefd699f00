/* Tiles of matrix products in whole vector registers, and transposes. */
#ifndef ACCEL_CPU_TILES_H
#define ACCEL_CPU_TILES_H

#include <stdbool.h>
#include <stddef.h>

/* A vector register of floats, loaded from anywhere, and the rows and columns of a tile that registers hold. */
#if defined __AVX512F__
typedef float accel_lanes __attribute__((vector_size(64), aligned(4), may_alias));
enum { ACCEL_LANES = 16, ACCEL_TILE_ROWS = 8, ACCEL_TILE_COLUMNS = 32 };
#elif defined __AVX__
typedef float accel_lanes __attribute__((vector_size(32), aligned(4), may_alias));
enum { ACCEL_LANES = 8, ACCEL_TILE_ROWS = 4, ACCEL_TILE_COLUMNS = 16 };
#else
typedef float accel_lanes __attribute__((vector_size(16), aligned(4), may_alias));
enum { ACCEL_LANES = 4, ACCEL_TILE_ROWS = 4, ACCEL_TILE_COLUMNS = 16 };
#endif

/* c[rows][columns] (+)= a[rows][depth] b[depth][columns] with rows and columns that registers hold. */
static inline __attribute__((always_inline)) void accel_small_tile(int rows, int columns, bool add, size_t depth,
                                                                   const float *a, size_t a_row, size_t a_step,
                                                                   const float *b, size_t b_row, float *c,
                                                                   size_t c_row) {
  accel_lanes sum[ACCEL_TILE_ROWS][ACCEL_TILE_COLUMNS / ACCEL_LANES];
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < columns / ACCEL_LANES; j++)
      sum[i][j] = add ? *(const accel_lanes *)(c + (size_t)i * c_row + j * ACCEL_LANES) : (accel_lanes){0.0f};
  for (size_t t = 0; t < depth; t++)
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
      for (int j = 0; j < columns / ACCEL_LANES; j++)
        sum[i][j] += a[(size_t)i * a_row + t * a_step] * *(const accel_lanes *)(b + t * b_row + j * ACCEL_LANES);
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int j = 0; j < columns / ACCEL_LANES; j++)
      *(accel_lanes *)(c + (size_t)i * c_row + j * ACCEL_LANES) = sum[i][j];
}

/* The same for up to 8 rows and for 16 or 32 columns; a[i][t] is a[i * a_row + t * a_step]. rows, columns and add are
 * constants where it is inlined. */
static inline __attribute__((always_inline)) void accel_tile(int rows, int columns, bool add, size_t depth,
                                                             const float *a, size_t a_row, size_t a_step,
                                                             const float *b, size_t b_row, float *c, size_t c_row) {
#pragma GCC unroll 2
  for (int i = 0; i < rows; i += ACCEL_TILE_ROWS)
#pragma GCC unroll 2
    for (int j = 0; j < columns; j += ACCEL_TILE_COLUMNS)
      accel_small_tile(rows - i < ACCEL_TILE_ROWS ? rows - i : ACCEL_TILE_ROWS,
                       columns - j < ACCEL_TILE_COLUMNS ? columns - j : ACCEL_TILE_COLUMNS, add, depth,
                       a + (size_t)i * a_row, a_row, a_step, b + j, b_row, c + (size_t)i * c_row + j, c_row);
}

#if defined __AVX512F__ && __has_builtin(__builtin_shufflevector)
#define ACCEL_SHUFFLES 1
/* Transposes 16 rows of 16 lanes: each of four rounds shuffles rows r and r + 8, like cards, which rotates the eight
 * bits of an element's index by one. */
static inline __attribute__((always_inline)) void accel_transpose_lanes(accel_lanes x[static 16]) {
  accel_lanes y[16];
#pragma GCC unroll 4
  for (int round = 0; round < 4; round++) {
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) {
      y[2 * r] = __builtin_shufflevector(x[r], x[r + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      y[2 * r + 1] =
          __builtin_shufflevector(x[r], x[r + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
#pragma GCC unroll 16
    for (int r = 0; r < 16; r++) x[r] = y[r];
  }
}
#endif

/* to[c][r] = factor from[r][c] for 16 rows and columns. */
static inline void accel_transpose(float factor, const float *from, size_t from_row, float *to, size_t to_row) {
#if defined ACCEL_SHUFFLES
  accel_lanes x[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++) x[r] = factor * *(const accel_lanes *)(from + (size_t)r * from_row);
  accel_transpose_lanes(x);
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++) *(accel_lanes *)(to + (size_t)r * to_row) = x[r];
#else
  for (size_t c = 0; c < 16; c++)
    for (size_t r = 0; r < 16; r++) to[c * to_row + r] = factor * from[r * from_row + c];
#endif
}

#endif
