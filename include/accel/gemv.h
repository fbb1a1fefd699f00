/* The product of one row and a matrix of floats, which a processor reads from memory once: what writing a text is made
 * of. */
#ifndef ACCEL_GEMV_H
#define ACCEL_GEMV_H

#include <stdint.h>

/* y[columns] = b[columns][depth] x + beta y, by all threads, or by the calling one within a parallel region. b_step:
 * elements from one line of b to the next. y is not read where beta is 0.
 *
 * A number of y is the sum of 16 parts, each of every 16th product of the line, added in order; the last part of a line
 * is as if zeros followed it. Parts 8 places from each other are added first, then those 4, 2 and 1 from each other. So
 * the bits do not depend on the number of threads, nor on the registers of the processor. */
void accel_gemv(int64_t columns, int64_t depth, float *y, const float *x, const float *b, int64_t b_step, float beta);

#endif
