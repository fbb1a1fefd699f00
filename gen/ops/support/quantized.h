/* Weights of 4 bits: how many elements share a scale, and the shapes of what such a matrix is stored as
 * (include/accel/quantized_gemm.h has the form). */
#ifndef ACCEL_OPS_QUANTIZED_H
#define ACCEL_OPS_QUANTIZED_H

#include "gen/ir/tensor.h"

enum { QUANTIZED_BLOCK = 64, QUANTIZED_NESTED = 256 };

/* Of a matrix of so many elements: its codes, [bytes][1] as bitsandbytes has them; its scales, one for each block; the
 * scales of these, one for each QUANTIZED_NESTED of them. */
struct shape quantized_codes(int64_t elements);
struct shape quantized_scales(int64_t elements);
struct shape quantized_nested(int64_t elements);

#endif
