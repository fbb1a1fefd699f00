#include "gen/ops/support/quantized.h"

static int64_t groups(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

struct shape quantized_codes(enum quantized_codes codes, int64_t out, int64_t in) {
  return codes == CODES_INT8 ? shape_of(2, out, in) : shape_of(2, groups(out * in, 2), INT64_C(1));
}

struct shape quantized_scales(enum quantized_codes codes, int64_t out, int64_t in) {
  return shape_of(1, codes == CODES_INT8 ? out : groups(out * in, QUANTIZED_BLOCK));
}

struct shape quantized_nested(int64_t out, int64_t in) {
  return shape_of(1, groups(groups(out * in, QUANTIZED_BLOCK), QUANTIZED_NESTED));
}

enum dtype quantized_dtype(enum quantized_codes codes) {
  return codes == CODES_INT8 ? DTYPE_INT8 : DTYPE_UINT8;
}
