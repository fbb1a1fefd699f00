/* Weights of 4 and 8 bits: their codes, how many elements share a scale, and the shapes of what such a matrix is stored
 * as (include/accel/quantized_gemm.h has the form). */
#ifndef ACCEL_OPS_QUANTIZED_H
#define ACCEL_OPS_QUANTIZED_H

#include "gen/ir/tensor.h"

/* What the codes of a matrix stand for. */
enum quantized_codes {
  CODES_NF4,
  CODES_FP4,
  CODES_INT8,
  CODES_INT8_GROUPS,
  CODES_INT4_GROUPS,
  CODES_Q8_0,
  CODES_Q4_0,
  CODES_Q4_K
};

/* How a matrix is stored: its codes, and how many elements of a row share a scale, of codes by groups. */
struct quantized_form {
  enum quantized_codes codes;
  int64_t group;
};

enum { QUANTIZED_BLOCK = 64, QUANTIZED_NESTED = 256 };

/* Of a matrix [out][in]: its codes, of 4 bits [bytes][1] as bitsandbytes has them, by groups [out][in / 2], and GGUF's
 * [out][blocks][bytes]; its scales, one for each block, of int8 for each row, by groups [out][groups], of 4 bits with a
 * zero [out][groups][2]; the scales of these, one for each QUANTIZED_NESTED of them. */
struct shape quantized_codes(struct quantized_form form, int64_t out, int64_t in);
struct shape quantized_scales(struct quantized_form form, int64_t out, int64_t in);
struct shape quantized_nested(int64_t out, int64_t in);

/* The type of a code, or of the bytes that two of them share. */
enum dtype quantized_dtype(enum quantized_codes codes);

/* Whether the codes have scales next to them, as all but GGUF's have. */
bool quantized_has_scales(enum quantized_codes codes);

/* Of how many elements a row is a multiple; 1: any row is. */
int64_t quantized_step(struct quantized_form form);

/* The float16 nearest to x, ties to even; infinite from where that begins. */
double op_float16(double x);

/* The float16 whose two bytes these are, the lower one first, each a whole number. */
double op_float16_at(const double *bytes);

#endif
