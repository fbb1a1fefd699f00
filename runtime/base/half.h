/* Conversions of the 16-bit floating formats; each value of theirs is a float32. Branch-free over the bits, so that
 * loops over them vectorize. Rounding is to the nearest, ties to even; a NaN stays one. */
#ifndef RUNTIME_BASE_HALF_H
#define RUNTIME_BASE_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* bfloat16: the upper half of a float32. */
static inline float rt_widen_bfloat16(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float y;
  memcpy(&y, &bits, sizeof y);
  return y;
}

static inline uint16_t rt_narrow_bfloat16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, kept = bits >> 16 | 0x40u;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? kept : rounded);
}

/* IEEE 754 binary16, by the forms of Giesen ("float/half conversions", 2012): 2^112 moves the exponent up; a sum with
 * 1/2 rounds what becomes subnormal. */
static inline float rt_widen_float16(uint16_t x) {
  uint32_t shifted = (x & 0x7fffu) << 13, sign = (x & 0x8000u) << 16, bits;
  float y;
  memcpy(&y, &shifted, sizeof y);
  y *= 0x1p112f;
  memcpy(&bits, &y, sizeof bits);
  bits |= (shifted >= 0x0f800000u ? 0x7f800000u : 0u) | sign;
  memcpy(&y, &bits, sizeof y);
  return y;
}

static inline uint16_t rt_narrow_float16(float x) {
  uint32_t bits, subnormal;
  memcpy(&bits, &x, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  float moved = fabsf(x) + 0.5f;
  memcpy(&subnormal, &moved, sizeof subnormal);
  uint32_t y = size < 0x38800000u ? subnormal - 0x3f000000u : normal;
  y = size >= 0x47800000u ? 0x7c00u : y;
  y = size > 0x7f800000u ? 0x7e00u : y;
  return (uint16_t)(y | sign);
}

#endif
