/* Numbers of 8 bits: floats rounded to those that E4M3 and E5M2 have (Micikevicius et al., "FP8 Formats for Deep
 * Learning", arXiv:2209.05433), their codes, and the scales of tensors: functions that are the same text on every
 * device. The header of a device that includes this says in ACCEL_FUNCTION what a function begins with. */
#ifndef ACCEL_FP8_H
#define ACCEL_FP8_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The largest numbers of both. */
#define ACCEL_E4M3_MOST 448.0f
#define ACCEL_E5M2_MOST 57344.0f

/* x to the nearest number, ties to even, of a format of `bits` of mantissa whose normal numbers are from `least` to
 * `most`; beyond them it is `most`. A NaN stays one, and a zero has its sign. A number of the size of x plus 3 2^22 of
 * its last places has no bits below these. */
ACCEL_FUNCTION float accel_round_fp8(float x, int bits, float least, float most) {
  const float size = fabsf(x);
  const float within = size > most ? most : size;
  const float normal = within > least ? within : least;
  uint32_t power;
  memcpy(&power, &normal, sizeof power);
  power = (power & 0x7f800000u) + ((uint32_t)(23 - bits) << 23 | 0x400000u);
  float shift;
  memcpy(&shift, &power, sizeof shift);
  return copysignf((within + shift) - shift, x);
}

/* x to the nearest number of E4M3. */
ACCEL_FUNCTION float accel_round_e4m3(float x) {
  return accel_round_fp8(x, 3, 0.015625f, ACCEL_E4M3_MOST);
}

/* The same of E5M2. */
ACCEL_FUNCTION float accel_round_e5m2(float x) {
  return accel_round_fp8(x, 2, 0.00006103515625f, ACCEL_E5M2_MOST);
}

/* The code of a number that E4M3 has: a sign, 4 bits of exponent from 2^-6 on, 3 of mantissa. */
ACCEL_FUNCTION uint8_t accel_e4m3_code(float x) {
  const float size = fabsf(x);
  uint32_t bits, sign;
  memcpy(&bits, &size, sizeof bits);
  memcpy(&sign, &x, sizeof sign);
  const uint32_t normal = (bits >> 20) - ((127 - 7) << 3), below = size < 0.015625f ? (uint32_t)(size * 512.0f) : 0u;
  const uint32_t code = bits > 0x7f800000u ? 0x7fu : size < 0.015625f ? below : normal;
  return (uint8_t)((sign >> 24 & 0x80u) | code);
}

/* The same of E5M2: 5 bits of exponent from 2^-14 on, 2 of mantissa. */
ACCEL_FUNCTION uint8_t accel_e5m2_code(float x) {
  const float size = fabsf(x), least = 0.00006103515625f;
  uint32_t bits, sign;
  memcpy(&bits, &size, sizeof bits);
  memcpy(&sign, &x, sizeof sign);
  const uint32_t normal = (bits >> 21) - ((127 - 15) << 2), below = size < least ? (uint32_t)(size * 65536.0f) : 0u;
  const uint32_t code = bits > 0x7f800000u ? 0x7fu : size < least ? below : normal;
  return (uint8_t)((sign >> 24 & 0x80u) | code);
}

/* The factor that brings the largest of a tensor's sizes to `most`; NaN where it is none. */
ACCEL_FUNCTION float accel_fp8_scale(float largest, float most) {
  return (float)((double)most / (largest < 1e-12f ? 1e-12 : (double)largest));
}

/* The largest power of two that brings it no further than `most`; 1 where it is 0 or none (MS-AMP's scales). */
ACCEL_FUNCTION float accel_fp8_power(float largest, float most) {
  const float ratio = most / largest;
  uint32_t bits;
  memcpy(&bits, &ratio, sizeof bits);
  bits &= 0x7f800000u;
  float power;
  memcpy(&power, &bits, sizeof power);
  return largest > 0.0f && isfinite(largest) && isfinite(power) && power > 0.0f ? power : 1.0f;
}

/* x to the nearest number that fp16 has. */
ACCEL_FUNCTION float accel_round_fp16(float x) {
  return accel_round_fp8(x, 10, 0.00006103515625f, 65504.0f);
}

/* The scales of blocks are powers of two (OCP Microscaling Formats specification 1.0), numbers of e8m0: from 2^-127 to
 * 2^127. */
ACCEL_FUNCTION float accel_power_of_two(int power) {
  const uint32_t bits = power > -127 ? (uint32_t)(power + 127) << 23 : 0x400000u;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Where a float's leading bit is; -127 for those below the normal ones, 128 for what is no number. */
ACCEL_FUNCTION int accel_exponent(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (int)(bits >> 23 & 0xffu) - 127;
}

/* The nearest power of two that e8m0 has. */
ACCEL_FUNCTION int accel_within_e8m0(int power) {
  return power < -127 ? -127 : power > 127 ? 127 : power;
}

/* The power of two that a group's numbers of E4M3 are to be multiplied with, of its largest size. By row: the factor
 * that brings it to 448, rounded to a power of two towards 0, is the inverse (torchao, round_scales_to_power_of_2). */
ACCEL_FUNCTION int accel_row_power(float largest) {
  return -accel_exponent(accel_fp8_scale(largest, ACCEL_E4M3_MOST));
}

/* Floor: the largest power of two in it over that of E4M3, 2^8 (section 6.3 of the specification). */
ACCEL_FUNCTION int accel_floor_power(float largest) {
  return accel_within_e8m0(accel_exponent(largest) - 8);
}

/* Ceiling: it over 448, rounded up to a power of two (cuBLAS). */
ACCEL_FUNCTION int accel_ceiling_power(float largest) {
  const float ratio = largest / ACCEL_E4M3_MOST;
  const int power = accel_exponent(ratio);
  return accel_within_e8m0(ratio > accel_power_of_two(power) ? power + 1 : power);
}

/* Delayed scaling, when a batch is over in which a tensor was rounded with `scale`: that of the next one, most over
 * `size`, the largest of the sizes that count; the same where there is no such number. */
ACCEL_FUNCTION float accel_fp8_scale_after(float scale, float size, float most) {
  const float ratio = most / size;
  return size > 0.0f && isfinite(size) ? (isinf(ratio) ? 3.40282347e38f : ratio) : scale;
}

#endif
