/* Products of matrices with weights of 4 and 8 bits. In the forms of bitsandbytes (Dettmers, Pagnoni, Holtzman,
 * Zettlemoyer, "QLoRA", arXiv:2305.14314) a matrix [out][in] is one row of elements. Each has a code of 4 bits, two in
 * a byte, the first in the upper half; ACCEL_QUANTIZED_BLOCK elements in a row share a scale, the largest magnitude
 * among them:
 *
 *   element i = level[code i] scale[i / block]
 *
 * With double quantization a scale is a code of 8 bits itself, and ACCEL_QUANTIZED_NESTED scales share another one:
 * scale b = level8[absmax b] nested_absmax[b / nested] + nested_offset, where level8 is the signed dynamic map of
 * "8-Bit Approximations for Parallelism in Deep Learning" (arXiv:1511.04561).
 *
 * A matrix of 8 bits has codes of int8, and a scale for each row, the largest magnitude in it: element i of row o is
 * code i (scale o / 127).
 *
 * Codes of even steps are torchao's, by groups of a row, and GGUF's (runtime/base/linear_codes.h): rows of whole
 * groups, with a float for each group of int8, two for each of 4 bits, and none of GGUF's, whose codes have their
 * scales.
 *
 * An emitted program states the shape of each product once, opens all of them at its start, and multiplies without
 * allocating. No more than a tile of the matrix is in float32 at a time. */
#ifndef ACCEL_QUANTIZED_GEMM_H
#define ACCEL_QUANTIZED_GEMM_H

#include "dtype.h"
#include "gemm.h"

#include <stdbool.h>
#include <stdint.h>

enum { ACCEL_QUANTIZED_BLOCK = 64, ACCEL_QUANTIZED_NESTED = 256 };

/* y[rows][out] (+)= x[rows][in] W^T, or, `straight`, y[rows][in] (+)= x[rows][out] W, of the matrix W [out][in]. */
struct accel_quantized_gemm {
  enum accel_element type; /* of x and y; W's elements are rounded to it, and sums are of float32 */
  int64_t rows, out, in;
  bool straight, accumulate;
  enum accel_codes as;
  int64_t group;                  /* of codes by groups: the elements of one */
  const struct rt_row_form *form; /* the runtime's own: how the processor reads codes, */
  bool native;                    /* and whether it multiplies numbers of the type */
};

/* Makes one ready, by what the processor has. Returns whether numbers of its type are multiplied as such; false: they
 * are widened to float32. */
bool accel_open_quantized_gemm(struct accel_quantized_gemm *gemm);

/* The product. codes are bytes of two, int8, or bytes of GGUF's. absmax has floats where nested_absmax is NULL, else
 * codes of 8 bits; nested_offset is one number; of GGUF's codes all three are NULL. The bits do not depend on the
 * number of threads. What oneDNN says is in accel_onednn_status. */
void accel_multiply_quantized(const struct accel_quantized_gemm *gemm, void *y, const void *x, const void *codes,
                              const void *absmax, const float *nested_absmax, const float *nested_offset);

#endif
