/* The product of one row and a matrix of floats, which a processor reads from memory once: what writing a text is made
 * of. */
#ifndef ACCEL_ROW_GEMM_H
#define ACCEL_ROW_GEMM_H

#include <stdbool.h>
#include <stdint.h>

/* Whether accel_multiply_row is for c = a b + beta c of these, as BLAS names them: one row, by a matrix that has
 * `columns` lines of `depth` elements, too many for the caches next to a core. It is faster there than oneDNN, which is
 * faster elsewhere. */
static inline bool accel_is_row(char transa, char transb, int64_t rows, int64_t columns, int64_t depth) {
  enum { LARGE = 1 << 18 };
  return rows == 1 && transa == 'N' && transb == 'T' && columns * depth >= LARGE;
}

/* y[columns] = b[columns][depth] x + beta y, by all threads, or by the calling one within a parallel region. b_step:
 * elements from one line of b to the next. y is not read where beta is 0.
 *
 * A number of y is the sum of 16 parts, each of every 16th product of the line, added in order; the last part of a line
 * is as if zeros followed it. Parts 8 places from each other are added first, then those 4, 2 and 1 from each other. So
 * the bits do not depend on the number of threads, nor on the registers of the processor. */
void accel_multiply_row(int64_t columns, int64_t depth, float *y, const float *x, const float *b, int64_t b_step,
                        float beta);

#endif
