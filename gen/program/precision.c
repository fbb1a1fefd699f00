#include "gen/program/precision.h"

enum dtype precision_dtype(enum mixed_precision precision) {
  static const enum dtype dtypes[] = {
      [PRECISION_NO] = DTYPE_FLOAT32, [PRECISION_BF16] = DTYPE_BFLOAT16, [PRECISION_FP16] = DTYPE_FLOAT16};
  return dtypes[precision];
}
