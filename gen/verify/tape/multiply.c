/* Products by blocks, as K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (ACM TOMS 34,
 * 2008), divide them: blocks of both operands are copied into the order in which they are read, and a tile of the
 * result stays in registers. */
#include "gen/verify/tape/multiply.h"

#include <stdlib.h>

#include "runtime/base/wide.h"

/* A tile of the result; a block of it, in whole tiles; and how many terms are added to a block at a time. A block of
 * each operand stays in the second level of a cache. */
enum { TILE_ROWS = 6, TILE_COLUMNS = 8, BLOCK_ROWS = 132, BLOCK_COLUMNS = 256, DEPTH = 256 };

/* The numbers of a register, of which a row of a tile has two. */
enum { LANES = TILE_COLUMNS / 2 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), may_alias));

/* y [rows][columns], rows with a stride of `line`, += a [terms][TILE_ROWS] times b [terms][TILE_COLUMNS], as they are
 * copied. */
RT_INLINED void add_tile_body(double *y, int64_t line, const double *a, const double *b, int64_t terms, int64_t rows,
                              int64_t columns) {
  lanes left[TILE_ROWS] = {{0}}, right[TILE_ROWS] = {{0}};
  for (int64_t j = 0; j < terms; j++) {
    const lanes *of_b = (const lanes *)(const void *)(b + j * TILE_COLUMNS);
    const lanes b0 = of_b[0], b1 = of_b[1];
    for (int r = 0; r < TILE_ROWS; r++) {
      left[r] += a[j * TILE_ROWS + r] * b0;
      right[r] += a[j * TILE_ROWS + r] * b1;
    }
  }
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) y[r * line + c] += c < LANES ? left[r][c] : right[r][c - LANES];
}

/* A block from copied blocks of the operands. */
RT_INLINED void add_block_body(double *y, int64_t line, const double *a, const double *b, int64_t terms, int64_t rows,
                               int64_t columns) {
  for (int64_t c = 0; c < columns; c += TILE_COLUMNS)
    for (int64_t r = 0; r < rows; r += TILE_ROWS)
      add_tile_body(y + r * line + c, line, a + r * terms, b + c * terms, terms,
                    rows - r < TILE_ROWS ? rows - r : TILE_ROWS,
                    columns - c < TILE_COLUMNS ? columns - c : TILE_COLUMNS);
}

static void add_block(double *y, int64_t line, const double *a, const double *b, int64_t terms, int64_t rows,
                      int64_t columns);
RT_FOR_WIDTHS(add_block,
              (double *y, int64_t line, const double *a, const double *b, int64_t terms, int64_t rows, int64_t columns),
              (y, line, a, b, terms, rows, columns))

/* Copies [lines][terms], with strides of `line` and `term`, as [lines / width][terms][width], with 0 where there is
 * no line. */
static void copy_block(double *to, const double *from, int64_t line, int64_t term, int64_t lines, int64_t terms,
                       int64_t width) {
  for (int64_t first = 0; first < lines; first += width)
    for (int64_t j = 0; j < terms; j++)
      for (int64_t i = 0; i < width; i++) *to++ = first + i < lines ? from[(first + i) * line + j * term] : 0;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t blocks(int64_t count, int64_t each) {
  return (count + each - 1) / each;
}

/* Room for copies of a block of both operands, in whole tiles. */
enum { ROOM_OF_A = BLOCK_ROWS * DEPTH, ROOM_OF_B = BLOCK_COLUMNS * DEPTH };

bool multiply(double *y, struct matrices_at a, struct matrices_at b, int64_t m, int64_t k, int64_t n, int64_t stacks) {
  const int64_t down = blocks(m, BLOCK_ROWS), across = blocks(n, BLOCK_COLUMNS), all = stacks * down * across;
  const bool large = (double)m * (double)k * (double)n * (double)stacks > 100000;
  bool good = true;
#pragma omp parallel if (large)
  {
    double *own_a = aligned_alloc(64, (ROOM_OF_A + ROOM_OF_B) * sizeof *own_a), *own_b = own_a + ROOM_OF_A;
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < all; i++) {
      const int64_t s = i / (down * across), row = i / across % down * BLOCK_ROWS, column = i % across * BLOCK_COLUMNS;
      const int64_t rows = least(m - row, BLOCK_ROWS), columns = least(n - column, BLOCK_COLUMNS);
      for (int64_t j = 0; j < k && own_a != NULL; j += DEPTH) {
        const int64_t terms = least(k - j, DEPTH);
        copy_block(own_a, a.at + s * a.stack + row * a.row + j * a.column, a.row, a.column, rows, terms, TILE_ROWS);
        copy_block(own_b, b.at + s * b.stack + j * b.row + column * b.column, b.column, b.row, columns, terms,
                   TILE_COLUMNS);
        add_block(y + (s * m + row) * n + column, n, own_a, own_b, terms, rows, columns);
      }
    }
    if (own_a == NULL)
#pragma omp atomic write
      good = false;
    free(own_a);
  }
  return good;
}
