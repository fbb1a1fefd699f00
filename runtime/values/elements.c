#include "runtime/values/elements.h"

#include "include/accel/value.h"
#include "runtime/base/dtype.h"
#include "runtime/base/half.h"

size_t accel_dtype_size(enum accel_dtype dtype) {
  return rt_dtype_size(dtype);
}

const char *accel_dtype_name(enum accel_dtype dtype) {
  static const char *const names[ACCEL_DTYPES] = {
      [ACCEL_FLOAT32] = "float32", [ACCEL_FLOAT16] = "float16", [ACCEL_BFLOAT16] = "bfloat16", [ACCEL_INT32] = "int32",
      [ACCEL_INT64] = "int64",     [ACCEL_UINT8] = "uint8",     [ACCEL_FLOAT64] = "float64",   [ACCEL_INT8] = "int8",
      [ACCEL_INT16] = "int16",     [ACCEL_BOOL] = "bool",
  };
  return names[dtype];
}

bool rt_is_floating(enum accel_dtype dtype) {
  return dtype == ACCEL_FLOAT32 || dtype == ACCEL_FLOAT16 || dtype == ACCEL_BFLOAT16 || dtype == ACCEL_FLOAT64;
}

int64_t rt_integer_at(enum accel_dtype dtype, const void *data, int64_t index) {
  switch (dtype) {
  case ACCEL_INT64:
    return ((const int64_t *)data)[index];
  case ACCEL_INT32:
    return ((const int32_t *)data)[index];
  case ACCEL_INT16:
    return ((const int16_t *)data)[index];
  case ACCEL_INT8:
    return ((const int8_t *)data)[index];
  case ACCEL_BOOL:
    return ((const uint8_t *)data)[index] != 0;
  default:
    return ((const uint8_t *)data)[index];
  }
}

double rt_real_at(enum accel_dtype dtype, const void *data, int64_t index) {
  switch (dtype) {
  case ACCEL_FLOAT64:
    return ((const double *)data)[index];
  case ACCEL_FLOAT32:
    return (double)((const float *)data)[index];
  case ACCEL_FLOAT16:
    return (double)rt_widen_float16(((const uint16_t *)data)[index]);
  case ACCEL_BFLOAT16:
    return (double)rt_widen_bfloat16(((const uint16_t *)data)[index]);
  default:
    return (double)rt_integer_at(dtype, data, index);
  }
}

/* To 16 bits by way of float32: where that rounded, it is made odd in its last bit, so that the second rounding sees
 * that something was there (Boldo and Melquiond, "When double rounding is odd", 2005). */
static float round_to_odd(double value) {
  float near = (float)value;
  uint32_t bits;
  if (!isfinite(value) || !isfinite(near) || (double)near == value) return near;
  if (fabs((double)near) > fabs(value)) near = nextafterf(near, 0);
  memcpy(&bits, &near, sizeof bits);
  bits |= 1u;
  memcpy(&near, &bits, sizeof near);
  return near;
}

void rt_set_real(enum accel_dtype dtype, void *data, int64_t index, double value) {
  switch (dtype) {
  case ACCEL_FLOAT64:
    ((double *)data)[index] = value;
    break;
  case ACCEL_FLOAT32:
    ((float *)data)[index] = (float)value;
    break;
  case ACCEL_FLOAT16:
    ((uint16_t *)data)[index] = rt_narrow_float16(round_to_odd(value));
    break;
  case ACCEL_BFLOAT16:
    ((uint16_t *)data)[index] = rt_narrow_bfloat16(round_to_odd(value));
    break;
  default:
    rt_set_integer(dtype, data, index, value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : 0);
  }
}

void rt_set_integer(enum accel_dtype dtype, void *data, int64_t index, int64_t value) {
  switch (dtype) {
  case ACCEL_INT64:
    ((int64_t *)data)[index] = value;
    break;
  case ACCEL_INT32:
    ((int32_t *)data)[index] = (int32_t)value;
    break;
  case ACCEL_INT16:
    ((int16_t *)data)[index] = (int16_t)value;
    break;
  case ACCEL_INT8:
    ((int8_t *)data)[index] = (int8_t)value;
    break;
  case ACCEL_BOOL:
    ((uint8_t *)data)[index] = value != 0;
    break;
  case ACCEL_UINT8:
    ((uint8_t *)data)[index] = (uint8_t)value;
    break;
  default:
    rt_set_real(dtype, data, index, (double)value);
  }
}

void rt_convert(enum accel_dtype to, void *out, enum accel_dtype from, const void *in, int64_t count) {
  if (to == from) {
    if (count > 0) memcpy(out, in, (size_t)count * accel_dtype_size(to));
    return;
  }
  for (int64_t i = 0; i < count; i++)
    if (rt_is_floating(from))
      rt_set_real(to, out, i, rt_real_at(from, in, i));
    else
      rt_set_integer(to, out, i, rt_integer_at(from, in, i));
}

enum accel_dtype rt_promote(enum accel_dtype a, enum accel_dtype b) {
  static const int order[ACCEL_DTYPES] = {
      [ACCEL_BOOL] = 0,  [ACCEL_UINT8] = 1,   [ACCEL_INT8] = 2,     [ACCEL_INT16] = 3,   [ACCEL_INT32] = 4,
      [ACCEL_INT64] = 5, [ACCEL_FLOAT16] = 6, [ACCEL_BFLOAT16] = 7, [ACCEL_FLOAT32] = 8, [ACCEL_FLOAT64] = 9};
  enum accel_dtype low = order[a] < order[b] ? a : b, high = low == a ? b : a;
  if (low == ACCEL_UINT8 && high == ACCEL_INT8) return ACCEL_INT16;
  return low == ACCEL_FLOAT16 && high == ACCEL_BFLOAT16 ? ACCEL_FLOAT32 : high;
}
