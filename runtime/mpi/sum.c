#include "runtime/mpi/sum.h"

#include "runtime/base/half.h"

#include <string.h>

enum { BLOCK = 2048 };

union block {
  float wide[BLOCK];
  uint16_t narrow[BLOCK];
};

typedef void sum_function(void *to, const void *a, const void *b, size_t count);

static void add_float32(void *to, const void *a, const void *b, size_t count) {
  const float *x = a, *y = b;
  float *sum = to;
#pragma omp simd
  for (size_t i = 0; i < count; i++) sum[i] = x[i] + y[i];
}

static void add_bfloat16(void *to, const void *a, const void *b, size_t count) {
  const uint16_t *x = a, *y = b;
  uint16_t *sum = to;
#pragma omp simd
  for (size_t i = 0; i < count; i++) sum[i] = rt_narrow_bfloat16(rt_widen_bfloat16(x[i]) + rt_widen_bfloat16(y[i]));
}

static void add_float16(void *to, const void *a, const void *b, size_t count) {
  const uint16_t *x = a, *y = b;
  uint16_t *sum = to;
#pragma omp simd
  for (size_t i = 0; i < count; i++) sum[i] = rt_narrow_float16(rt_widen_float16(x[i]) + rt_widen_float16(y[i]));
}

struct sum {
  sum_function *add;
  size_t width;
};

static struct sum sum_of(enum accel_dtype dtype) {
  if (dtype == ACCEL_FLOAT32) return (struct sum){add_float32, 4};
  return (struct sum){dtype == ACCEL_FLOAT16 ? add_float16 : add_bfloat16, 2};
}

/* From byte `at` of the n arrays on. */
static void add_tree(const struct sum *sum, void *to, const char *const *from, int n, size_t at, size_t count) {
  union block other;
  int lower = 1;
  if (n == 1) {
    memcpy(to, from[0] + at, count * sum->width);
    return;
  }
  if (n == 2) {
    sum->add(to, from[0] + at, from[1] + at, count);
    return;
  }
  while (2 * lower < n) lower *= 2;
  add_tree(sum, to, from, lower, at, count);
  add_tree(sum, &other, from + lower, n - lower, at, count);
  sum->add(to, to, &other, count);
}

void rt_sum_ranks(enum accel_dtype dtype, char *const *to, int n_to, const char *const *from, int n_from,
                  size_t count) {
  const struct sum sum = sum_of(dtype);
#pragma omp parallel for if (count > 8 * BLOCK)
  for (size_t first = 0; first < count; first += BLOCK) {
    union block block;
    size_t n = count - first < BLOCK ? count - first : BLOCK, at = first * sum.width;
    add_tree(&sum, &block, from, n_from, at, n);
    for (int i = 0; i < n_to; i++) memcpy(to[i] + at, &block, n * sum.width);
  }
}
