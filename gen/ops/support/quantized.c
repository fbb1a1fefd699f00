#include "gen/ops/support/quantized.h"

#include <math.h>

/* Elements and bytes of GGUF's blocks, and elements that share a scale at least, of codes by groups. */
enum { BLOCK = 32, Q8_0_BYTES = 34, Q4_0_BYTES = 18, SUPER = 256, Q4_K_BYTES = 144 };

static int64_t groups(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

struct shape quantized_codes(struct quantized_form form, int64_t out, int64_t in) {
  switch (form.codes) {
  case CODES_INT8:
  case CODES_INT8_GROUPS:
    return shape_of(2, out, in);
  case CODES_INT4_GROUPS:
    return shape_of(2, out, in / 2);
  case CODES_Q8_0:
    return shape_of(3, out, in / BLOCK, (int64_t)Q8_0_BYTES);
  case CODES_Q4_0:
    return shape_of(3, out, in / BLOCK, (int64_t)Q4_0_BYTES);
  case CODES_Q4_K:
    return shape_of(3, out, in / SUPER, (int64_t)Q4_K_BYTES);
  default:
    return shape_of(2, groups(out * in, 2), INT64_C(1));
  }
}

struct shape quantized_scales(struct quantized_form form, int64_t out, int64_t in) {
  switch (form.codes) {
  case CODES_INT8:
    return shape_of(1, out);
  case CODES_INT8_GROUPS:
    return shape_of(2, out, in / form.group);
  case CODES_INT4_GROUPS:
    return shape_of(3, out, in / form.group, INT64_C(2));
  default:
    return shape_of(1, groups(out * in, QUANTIZED_BLOCK));
  }
}

struct shape quantized_nested(int64_t out, int64_t in) {
  return shape_of(1, groups(groups(out * in, QUANTIZED_BLOCK), QUANTIZED_NESTED));
}

enum dtype quantized_dtype(enum quantized_codes codes) {
  return codes == CODES_INT8 || codes == CODES_INT8_GROUPS ? DTYPE_INT8 : DTYPE_UINT8;
}

bool quantized_has_scales(enum quantized_codes codes) {
  return codes != CODES_Q8_0 && codes != CODES_Q4_0 && codes != CODES_Q4_K;
}

int64_t quantized_step(struct quantized_form form) {
  switch (form.codes) {
  case CODES_INT8_GROUPS:
  case CODES_INT4_GROUPS:
    return form.group;
  case CODES_Q8_0:
  case CODES_Q4_0:
    return BLOCK;
  case CODES_Q4_K:
    return SUPER;
  default:
    return 1;
  }
}

double op_float16(double x) {
  int exponent;
  if (x == 0 || !isfinite(x)) return x;
  frexp(x, &exponent);
  const int place = (exponent > -13 ? exponent : -13) - 11;
  const double y = ldexp(nearbyint(ldexp(x, -place)), place);
  return fabs(y) > 65504 ? copysign(INFINITY, x) : y;
}

double op_float16_at(const double *bytes) {
  const int bits = (int)bytes[0] | (int)bytes[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                      : exponent == 0 ? ldexp(fraction, -24)
                                      : ldexp(fraction + 1024, exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}
