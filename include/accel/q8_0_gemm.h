/* Products of matrices in GGUF's blocks, whose both factors are quantized: as GGML multiplies Q8_0 and Q4_0. A matrix
 * W [out][in] has the codes of runtime/base/linear_codes.h. A row of x gets the form of Q8_0 for each product: of 32
 * elements d is the largest magnitude / 127, rounded to float16, and a code is the element times the inverse of the d
 * that is not rounded, rounded to the nearest whole number, ties away from zero.
 *
 *   y = sum over blocks of (sum of code of x · code of W, of 32, in whole numbers) d of x · d of W
 *
 * A number of y is the sum of 8 parts, in float32: of a block part i has the products 4i to 4i + 3, as a whole number,
 * times both d, added without rounding in between, one block after the other. Parts 4 places from each other are added
 * first, then those 2 and 1 from each other. So the bits are the same on all processors, for any number of threads and
 * of rows. Beyond 127 times the largest float16 a block of x is infinite, and so is y, or NaN. */
#ifndef ACCEL_Q8_0_GEMM_H
#define ACCEL_Q8_0_GEMM_H

#include "dtype.h"
#include "gemm.h"

#include <stdbool.h>
#include <stdint.h>

struct rt_q8_0_rows;

/* y[rows][out] = x[rows][in] W^T. */
struct accel_q8_0_gemm {
  enum accel_element type; /* of x and y */
  int64_t rows, out, in;   /* in: a multiple of 32 */
  enum accel_codes as;     /* of W: Q8_0 or Q4_0 */
  void (*dots)(const int8_t *x, const float *scales, const struct rt_q8_0_rows *rows,
               float *sums); /* the runtime's own: how the processor multiplies codes */
};

/* Makes one ready, by what the processor has. Returns true: all processors multiply codes exactly. */
bool accel_open_q8_0_gemm(struct accel_q8_0_gemm *gemm);

/* The product. Workspace: row_codes[rows][in] and row_scales[rows][in / 32] for the form of x. */
void accel_multiply_q8_0(const struct accel_q8_0_gemm *gemm, void *y, int8_t *row_codes, float *row_scales,
                         const void *x, const uint8_t *codes);

#endif
