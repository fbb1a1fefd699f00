#include "gen/ops/support/quantized.h"

static int64_t groups(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

struct shape quantized_codes(int64_t elements) {
  return shape_of(2, groups(elements, 2), INT64_C(1));
}

struct shape quantized_scales(int64_t elements) {
  return shape_of(1, groups(elements, QUANTIZED_BLOCK));
}

struct shape quantized_nested(int64_t elements) {
  return shape_of(1, groups(groups(elements, QUANTIZED_BLOCK), QUANTIZED_NESTED));
}
