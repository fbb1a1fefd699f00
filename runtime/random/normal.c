/* The polynomials are those of S. L. Moshier's Cephes library (logf, sinf, cosf). A loop over the lanes is what a
 * compiler turns into vector instructions; selections are arithmetic on bits for the same reason. */
#include "runtime/random/normal.h"

#include "runtime/base/wide.h"

#include <math.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* a fused product would round otherwise; gcc's -std=c17 fuses none */
#endif

RT_INLINED float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

RT_INLINED uint32_t to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* The logarithm of a normal positive number. */
RT_INLINED float logarithm(float value) {
  uint32_t bits = to_bits(value) - 0x3f3504f3; /* of sqrt(1/2): the fraction falls in [sqrt(1/2), sqrt(2)) */
  float exponent = (float)((int32_t)bits >> 23);
  float x = from_bits((bits & 0x7fffff) + 0x3f3504f3) - 1, z = x * x;
  float y = 7.0376836292E-2f;
  y = y * x - 1.1514610310E-1f;
  y = y * x + 1.1676998740E-1f;
  y = y * x - 1.2420140846E-1f;
  y = y * x + 1.4249322787E-1f;
  y = y * x - 1.6668057665E-1f;
  y = y * x + 2.0000714765E-1f;
  y = y * x - 2.4999993993E-1f;
  y = y * x + 3.3333331174E-1f;
  y = y * x * z - 2.12194440e-4f * exponent - 0.5f * z;
  return x + y + 0.693359375f * exponent; /* ln 2 in two parts: the larger is exact */
}

/* -2 ln(u) for u = word / 2^32, kept above 0 and at most 1. */
RT_INLINED float squared_radius(uint32_t word) {
  float u = ((float)(int32_t)(word >> 1) + 0.5f) * 0x1p-31f;
  float squared = -2 * logarithm(u);
  return squared > 0 ? squared : 0;
}

/* The cosine and sine of word / 2^32 turns. The nearest quarter turn is taken off exactly, as an integer. */
RT_INLINED void point_on_circle(uint32_t word, float *cosine, float *sine) {
  uint32_t quarter = (word + 0x20000000) >> 30;
  float t = (float)(int32_t)(word - (quarter << 30)) * (6.28318530717958647692f * 0x1p-32f), z = t * t;
  float s = ((-1.9515295891E-4f * z + 8.3321608736E-3f) * z - 1.6666654611E-1f) * z * t + t;
  float c = ((2.443315711809948E-5f * z - 1.388731625493765E-3f) * z + 4.166664568298827E-2f) * z * z - 0.5f * z + 1;
  uint32_t swap = 0 - (quarter & 1); /* all ones in odd quarters */
  uint32_t cosine_bits = (to_bits(c) & ~swap) | (to_bits(s) & swap);
  uint32_t sine_bits = (to_bits(s) & ~swap) | (to_bits(c) & swap);
  *cosine = from_bits(cosine_bits ^ ((quarter + 1) & 2) << 30);
  *sine = from_bits(sine_bits ^ (quarter & 2) << 30);
}

RT_INLINED void rt_normals_body(const uint32_t radius_words[NORMAL_LANES], const uint32_t angle_words[NORMAL_LANES],
                                float first[NORMAL_LANES], float second[NORMAL_LANES]) {
  float radius[NORMAL_LANES];
#pragma omp simd
  for (int i = 0; i < NORMAL_LANES; i++) {
    radius[i] = squared_radius(radius_words[i]);
    point_on_circle(angle_words[i], &first[i], &second[i]);
  }
  for (int i = 0; i < NORMAL_LANES; i++) radius[i] = sqrtf(radius[i]);
#pragma omp simd
  for (int i = 0; i < NORMAL_LANES; i++) {
    first[i] *= radius[i];
    second[i] *= radius[i];
  }
}

RT_FOR_WIDTHS(rt_normals,
              (const uint32_t radius_words[NORMAL_LANES], const uint32_t angle_words[NORMAL_LANES],
               float first[NORMAL_LANES], float second[NORMAL_LANES]),
              (radius_words, angle_words, first, second))
