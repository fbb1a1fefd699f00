#include "runtime/base/dtype.h"

size_t rt_dtype_size(enum accel_dtype dtype) {
  static const size_t sizes[ACCEL_DTYPES] = {
      [ACCEL_FLOAT32] = 4, [ACCEL_FLOAT16] = 2, [ACCEL_BFLOAT16] = 2, [ACCEL_INT32] = 4, [ACCEL_INT64] = 8,
      [ACCEL_UINT8] = 1,   [ACCEL_FLOAT64] = 8, [ACCEL_INT8] = 1,     [ACCEL_INT16] = 2, [ACCEL_BOOL] = 1,
  };
  return sizes[dtype];
}
