/* Sums of squares and of sizes whose bits do not depend on who adds up which. */
#include "include/accel/trainer.h"

#include <math.h>
#include <string.h>

enum { LINE = 16, BIAS = 1023, KEPT = 32 }; /* elements of a line; of a double's exponent; bits of its fraction */

/* In one order, whatever compiles it. */
static double sum_of_line(double *terms) {
  for (int half = LINE / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) terms[i] += terms[i + half];
  return terms[0];
}

static double squares_of_line(const float *values, float scale) {
  double squares[LINE];
  for (int i = 0; i < LINE; i++) {
    const float value = values[i] * scale;
    squares[i] = (double)value * value;
  }
  return sum_of_line(squares);
}

static double sizes_of_line(const float *values, float scale) {
  double sizes[LINE];
  for (int i = 0; i < LINE; i++) sizes[i] = fabsf(values[i] * scale);
  return sum_of_line(sizes);
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

void accel_add_sizes(int64_t *sums, const float *values, size_t count, float scale) {
#pragma omp parallel for reduction(+ : sums[ : ACCEL_SQUARES])
  for (size_t first = 0; first < count; first += LINE) add(sums, sizes_of_line(values + first, scale));
}

/* The elements of an array's part that are in a range: values[from] to values[to - 1]. */
struct common {
  size_t from, to;
};

static struct common common_of(size_t count, size_t at, size_t first, size_t n) {
  const size_t low = at > first ? at : first, end = at + count < first + n ? at + count : first + n;
  return low < end ? (struct common){low - at, end - at} : (struct common){0, 0};
}

void accel_add_squares_within(int64_t *sums, const float *values, size_t count, size_t at, size_t first, size_t n,
                              float scale) {
  const struct common common = common_of(count, at, first, n);
  if (common.from < common.to) accel_add_squares(sums, values + common.from, common.to - common.from, scale);
}

void accel_add_sizes_within(int64_t *sums, const float *values, size_t count, size_t at, size_t first, size_t n,
                            float scale) {
  const struct common common = common_of(count, at, first, n);
  if (common.from < common.to) accel_add_sizes(sums, values + common.from, common.to - common.from, scale);
}

double accel_sum_of_integers(const int64_t *sums) {
  double total = 0;
  if (sums[ACCEL_SQUARES - 2] != 0 || sums[ACCEL_SQUARES - 1] != 0) return NAN; /* of what is not finite */
  for (int i = ACCEL_SQUARES - 1; i >= 0; i--) total += ldexp((double)sums[i], 32 * i - BIAS - (KEPT - 1));
  return total;
}

double accel_root_of_squares(const int64_t *sums) {
  return sqrt(accel_sum_of_integers(sums));
}
