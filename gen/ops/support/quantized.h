/* Weights of 4 and 8 bits: their codes, how many elements share a scale, and the shapes of what such a matrix is stored
 * as (include/accel/quantized_gemm.h has the form). */
#ifndef ACCEL_OPS_QUANTIZED_H
#define ACCEL_OPS_QUANTIZED_H

#include "gen/ir/tensor.h"

/* What the codes of a matrix stand for. */
enum quantized_codes { CODES_NF4, CODES_FP4, CODES_INT8 };

enum { QUANTIZED_BLOCK = 64, QUANTIZED_NESTED = 256 };

/* Of a matrix [out][in]: its codes, of 4 bits [bytes][1] as bitsandbytes has them; its scales, one for each block, or
 * of int8 for each row; the scales of these, one for each QUANTIZED_NESTED of them. */
struct shape quantized_codes(enum quantized_codes codes, int64_t out, int64_t in);
struct shape quantized_scales(enum quantized_codes codes, int64_t out, int64_t in);
struct shape quantized_nested(int64_t out, int64_t in);

/* The type of a code, or of the bytes that two of them share. */
enum dtype quantized_dtype(enum quantized_codes codes);

#endif
