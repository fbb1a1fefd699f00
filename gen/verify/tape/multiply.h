/* Multiply: products of matrices in float64. */
#ifndef ACCEL_VERIFY_TAPE_MULTIPLY_H
#define ACCEL_VERIFY_TAPE_MULTIPLY_H

#include <stdbool.h>
#include <stdint.h>

/* A stack of matrices as it lies in memory: element (r, c) of matrix s is at[s * stack + r * row + c * column]. */
struct matrices_at {
  const double *at;
  int64_t stack, row, column;
};

/* Adds to each of `stacks` matrices y [m][n], one after the other, the product of a [m][k] and b [k][n] of the same
 * number in their stacks. On all processors. False: there is no memory. */
bool multiply(double *y, struct matrices_at a, struct matrices_at b, int64_t m, int64_t k, int64_t n, int64_t stacks);

#endif
