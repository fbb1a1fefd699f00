/* Sums of squares: those of a long double, and the same bits whoever adds which up; and those of a process alone. */
#include "cmocka_all.h"

#include "include/accel/cpu/norms.h"
#include "include/accel/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 48 * 1024 };

static float values[COUNT];
static uint64_t state;

static uint64_t drawn(void) {
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return state * 0x2545F4914F6CDD1DULL >> 16;
}

/* Of all sizes that a gradient may have: 2^-40 to 2^40. */
static int set_up(void **unused) {
  const char *seed = getenv("SEED");
  (void)unused;
  state = 0x9E3779B97F4A7C15ULL ^ (seed != NULL ? strtoull(seed, NULL, 10) : 0);
  printf("SEED %s\n", seed != NULL ? seed : "0");
  for (int i = 0; i < COUNT; i++)
    values[i] = ldexpf((float)(drawn() % 2000001) / 1e6f - 1.0f, (int)(drawn() % 81) - 40);
  return 0;
}

static double sum_of_sizes(const float *from, size_t count, float scale) {
  int64_t sums[ACCEL_SQUARES] = {0};
  accel_add_sizes(sums, from, count, scale);
  return accel_sum_of_integers(sums);
}

static double root_of(const float *from, size_t count, float scale) {
  int64_t sums[ACCEL_SQUARES] = {0};
  accel_add_squares(sums, from, count, scale);
  return accel_root_of_squares(sums);
}

static void test_value(void **unused) {
  (void)unused;
  for (size_t count = 16; count <= COUNT; count *= 3) {
    long double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (long double)(values[i] * 0.25f) * (values[i] * 0.25f);
    double wanted = (double)sqrtl(sum), found = root_of(values, count, 0.25f);
    assert_true(fabs(found - wanted) <= 1e-9 * wanted);
    sum = 0;
    for (size_t i = 0; i < count; i++) sum += fabsf(values[i] * 0.25f);
    assert_true(fabs(sum_of_sizes(values, count, 0.25f) - (double)sum) <= 1e-9 * (double)sum);
  }
  const float zeros[32] = {0};
  assert_true(root_of(zeros, 32, 1.0f) == 0.0);
}

static void test_any_order(void **unused) {
  double whole = root_of(values, COUNT, 1.0f);
  (void)unused;
  for (int round = 0; round < 20; round++) {
    int64_t sums[ACCEL_SQUARES] = {0};
    size_t cut = drawn() % (COUNT / 16) * 16;
    accel_add_squares(sums, values + cut, COUNT - cut, 1.0f);
    accel_add_squares(sums, values, cut, 1.0f);
    assert_true(accel_root_of_squares(sums) == whole);
  }
}

/* Parts of an array, each of which adds what it has of a range. */
static void test_within(void **unused) {
  (void)unused;
  for (int round = 0; round < 20; round++) {
    int64_t sums[ACCEL_SQUARES] = {0};
    size_t lines = COUNT / 16, cut = drawn() % lines * 16, first = drawn() % lines * 16;
    size_t n = 16 + drawn() % (lines - first / 16) * 16;
    int64_t sizes[ACCEL_SQUARES] = {0};
    accel_add_sizes_within(sizes, values, cut, 0, first, n, 1.0f);
    accel_add_sizes_within(sizes, values + cut, COUNT - cut, cut, first, n, 1.0f);
    assert_true(accel_sum_of_integers(sizes) == sum_of_sizes(values + first, n, 1.0f));
    accel_add_squares_within(sums, values, cut, 0, first, n, 1.0f);
    accel_add_squares_within(sums, values + cut, COUNT - cut, cut, first, n, 1.0f);
    assert_true(accel_root_of_squares(sums) == root_of(values + first, n, 1.0f));
  }
}

static void test_not_finite(void **unused) {
  const float bad[] = {NAN, INFINITY, -INFINITY};
  (void)unused;
  for (int i = 0; i < 3; i++) {
    float line[16] = {1.0f, [7] = bad[i]};
    assert_true(isnan(root_of(line, 16, 1.0f)));
  }
  const float largest[16] = {3e38f, 3e38f}, least[16] = {1e-45f};
  assert_true(isfinite(root_of(largest, 16, 1.0f)));
  assert_true(root_of(least, 16, 1.0f) > 0.0);
}

/* Of elements that are alike: what a long sum in float32 loses has one sign. */
static void test_of_one_process(void **unused) {
  static float alike[COUNT];
  double sums[(COUNT + ACCEL_NORM_CHUNK - 1) / ACCEL_NORM_CHUNK];
  (void)unused;
  for (int i = 0; i < COUNT; i++) alike[i] = 0.1f;
  for (size_t count = 500; count <= COUNT; count += 3889) {
    const double one = (double)alike[0] * alike[0] * 0.25, found = accel_sum_of_squares(alike, count, 0.5f, sums);
    assert_true(fabs(found - one * (double)count) <= 1e-6 * found);
    const double sizes = accel_sum_of_sizes(alike, count, 0.5f, sums);
    assert_true(fabs(sizes - 0.5 * alike[0] * (double)count) <= 1e-6 * sizes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_value),      cmocka_unit_test(test_any_order),      cmocka_unit_test(test_within),
      cmocka_unit_test(test_not_finite), cmocka_unit_test(test_of_one_process),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
