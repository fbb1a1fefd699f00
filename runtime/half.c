#include "half.h"

#include <string.h>

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float rt_from_bfloat16(uint16_t bits) {
  return from_bits((uint32_t)bits << 16);
}

float rt_from_float16(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return from_bits(sign | 0x7f800000 | fraction << 13); /* infinity, not a number */
  if (exponent != 0) return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
  float value = (float)fraction * 0x1p-24f; /* zero and subnormal */
  return sign != 0 ? -value : value;
}
