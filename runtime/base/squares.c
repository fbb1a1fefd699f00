/* Sums of squares whose bits do not depend on who adds up which. */
#include "include/accel/trainer.h"

#include <math.h>
#include <string.h>

enum { LINE = 16, BIAS = 1023, KEPT = 32 }; /* elements of a line; of a double's exponent; bits of its fraction */

/* In one order, whatever compiles it. */
static double squares_of_line(const float *values, float scale) {
  double squares[LINE];
  for (int i = 0; i < LINE; i++) {
    const float value = values[i] * scale;
    squares[i] = (double)value * value;
  }
  for (int half = LINE / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) squares[i] += squares[i + half];
  return squares[0];
}

/* The first KEPT bits of a number above 0 are an integer times a power of two: what is in each 32 bits of it is
 * added to the integer of these bits. */
static void add(int64_t *sums, double number) {
  uint64_t bits, exponent;
  memcpy(&bits, &number, sizeof bits);
  exponent = bits >> 52 & 0x7ff;
  if (exponent == 0) return;
  const uint64_t kept = ((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52) >> (53 - KEPT) << exponent % 32;
  sums[exponent / 32] += (int64_t)(kept & UINT32_MAX);
  sums[exponent / 32 + 1] += (int64_t)(kept >> 32);
}

void accel_add_squares(int64_t *sums, const float *values, size_t count, float scale) {
#pragma omp parallel for reduction(+ : sums[ : ACCEL_SQUARES])
  for (size_t first = 0; first < count; first += LINE) add(sums, squares_of_line(values + first, scale));
}

void accel_add_squares_within(int64_t *sums, const float *values, size_t count, size_t at, size_t first, size_t n,
                              float scale) {
  size_t low = at > first ? at : first, end = at + count < first + n ? at + count : first + n;
  if (low < end) accel_add_squares(sums, values + (low - at), end - low, scale);
}

double accel_root_of_squares(const int64_t *sums) {
  double total = 0;
  if (sums[ACCEL_SQUARES - 2] != 0 || sums[ACCEL_SQUARES - 1] != 0) return NAN; /* of what is not finite */
  for (int i = ACCEL_SQUARES - 1; i >= 0; i--) total += ldexp((double)sums[i], 32 * i - BIAS - (KEPT - 1));
  return sqrt(total);
}
