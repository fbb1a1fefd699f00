/* The types of a tensor's elements. */
#ifndef ACCEL_DTYPE_H
#define ACCEL_DTYPE_H

enum accel_dtype {
  ACCEL_FLOAT32,
  ACCEL_FLOAT16,
  ACCEL_BFLOAT16,
  ACCEL_INT32,
  ACCEL_INT64,
  ACCEL_UINT8,
  ACCEL_FLOAT64,
  ACCEL_INT8,
  ACCEL_INT16,
  ACCEL_BOOL, /* a byte, 0 or 1 */
  ACCEL_DTYPES
};

/* What the codes of a quantized weight stand for: levels of 4 bits, or themselves (accel/quantized_gemm.h). */
enum accel_codes {
  ACCEL_CODES_NF4,
  ACCEL_CODES_FP4,
  ACCEL_CODES_INT8,
  ACCEL_CODES_INT8_GROUPS,
  ACCEL_CODES_INT4_GROUPS,
  ACCEL_CODES_Q8_0,
  ACCEL_CODES_Q4_0,
  ACCEL_CODES_Q4_K
};

#endif
