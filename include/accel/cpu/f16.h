/* Elements of 16 bits in binary16, on a processor. */
#ifndef ACCEL_CPU_F16_H
#define ACCEL_CPU_F16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* IEEE 754 binary16, rounded to the nearest, ties to even; subnormal numbers and infinities are kept, and a NaN stays
 * one. Branch-free over the bits, so that a loop over it vectorizes (the forms of Giesen, "float/half conversions",
 * 2012): 2^112 moves the exponent up; a sum with 1/2 rounds what becomes subnormal. */
typedef uint16_t accel_f16;
static inline float accel_widen(accel_f16 x) {
  const uint32_t shifted = (x & 0x7fffu) << 13;
  const uint32_t sign = (x & 0x8000u) << 16;
  float y;
  memcpy(&y, &shifted, sizeof y);
  y *= 5.192296858534828e33f;
  uint32_t bits;
  memcpy(&bits, &y, sizeof bits);
  bits |= (shifted >= 0x0f800000u ? 0x7f800000u : 0u) | sign;
  memcpy(&y, &bits, sizeof y);
  return y;
}
static inline accel_f16 accel_narrow(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  const uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  const float moved = fabsf(x) + 0.5f;
  uint32_t subnormal;
  memcpy(&subnormal, &moved, sizeof subnormal);
  uint32_t y = size < 0x38800000u ? subnormal - 0x3f000000u : normal;
  y = size >= 0x47800000u ? 0x7c00u : y;
  y = size > 0x7f800000u ? 0x7e00u : y;
  return (accel_f16)(y | sign);
}

#endif
