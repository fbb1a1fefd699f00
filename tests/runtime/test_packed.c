/* Matmuls by packed weights and by rows: those of a double loop over rounded operands, in all layouts and for any
 * number of threads, of the weights as they are after they have changed and not before, and of one weight more than was
 * said. Of one row: those of a double loop, too, and the same bits for any number of threads and all registers. */
#include "cmocka_all.h"

#include "include/accel/gemm.h"
#include "include/accel/gemv.h"
#include "runtime/base/half.h"
#include "runtime/base/wide.h"
#include "runtime/random/philox.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 84, MOST = 3 * 96 * 160, WEIGHTS = 2, STORAGE = 4 * 128 * 192 * WEIGHTS };

static _Alignas(64) char storage[STORAGE];
static float a[ROWS * 96], b[MOST];
static uint16_t low_a[ROWS * 96], low_b[MOST];
static float y[ROWS * 160];
static uint16_t low_y[ROWS * 160];

/* Numbers of few bits, so that sums have no rounding in any order. */
static void fill(float *to, uint16_t *low, int64_t count, uint32_t salt) {
  for (int64_t i = 0; i < count; i++) {
    to[i] = (float)(((uint32_t)i * 2654435761u + salt * 40503u) >> 27) / 4.0f - 4.0f;
    low[i] = rt_narrow_bfloat16(to[i]);
  }
}

struct layout {
  enum accel_element type;
  int64_t depth, columns;
  bool by_columns;
};

static struct accel_gemm gemm_of(const struct layout *l) {
  return (struct accel_gemm){.type = l->type,
                             .result = l->type,
                             .rows = ROWS,
                             .columns = l->columns,
                             .depth = l->depth,
                             .y_row = l->columns,
                             .a_row = l->depth,
                             .a_column = 1,
                             .b_row = l->by_columns ? 1 : l->columns,
                             .b_column = l->by_columns ? l->depth : 1,
                             .weights = WEIGHTS};
}

/* Multiplies by weight `which` and looks at all elements, with the weights' values from `salt` on. */
static void check(const struct layout *l, const struct accel_gemm *p, int which, uint32_t salt) {
  const int64_t at = which * l->depth * l->columns;
  float now[MOST];
  uint16_t unused[MOST];
  fill(now, unused, MOST, salt);
  if (l->type == ACCEL_F32)
    accel_multiply(p, y, a, b + at);
  else
    accel_multiply(p, low_y, low_a, low_b + at);
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t j = 0; j < l->columns; j++) {
      double sum = 0;
      for (int64_t k = 0; k < l->depth; k++)
        sum += (double)a[i * l->depth + k] * (double)now[at + k * p->b_row + j * p->b_column];
      float found = l->type == ACCEL_F32 ? y[i * l->columns + j] : rt_widen_bfloat16(low_y[i * l->columns + j]);
      float wanted = l->type == ACCEL_F32 ? (float)sum : rt_widen_bfloat16(rt_narrow_bfloat16((float)sum));
      if (found != wanted)
        fail_msg("%d: y[%d][%d] is %g, not %g", which, (int)i, (int)j, (double)found, (double)wanted);
    }
}

static void test_gemms(void **unused) {
  static const struct layout layouts[] = {
      {ACCEL_F32, 96, 160, true},   {ACCEL_F32, 33, 65, true},   {ACCEL_F32, 64, 128, false},
      {ACCEL_BF16, 96, 160, true},  {ACCEL_BF16, 34, 65, true},  {ACCEL_BF16, 33, 65, true},
      {ACCEL_BF16, 96, 160, false}, {ACCEL_BF16, 65, 70, false}, {ACCEL_BF16, 32, 64, false},
  };
  (void)unused;
  for (size_t i = 0; i < 4 * sizeof layouts / sizeof *layouts; i++) {
    const struct layout *l = &layouts[i / 4];
    const int threads[] = {1, 2, 3, 5}; /* the last leaves rows over */
    struct accel_gemm p = gemm_of(l);
    omp_set_num_threads(threads[i % 4]);
    memset(storage, 0x7f, sizeof storage);
    accel_keep_packed(storage, STORAGE);
    accel_open_gemm(&p);
    for (uint32_t salt = 1; salt < 3; salt++) {
      fill(a, low_a, ROWS * l->depth, 7);
      fill(b, low_b, MOST, salt);
      accel_forget_packed();
      for (int which = 0; which < 3; which++) check(l, &p, which, salt);
      fill(b, low_b, MOST, 11); /* packed weights are those of the time when they were */
      if (p.packed != NULL) check(l, &p, 0, salt);
    }
    assert_int_equal(accel_onednn_status(), 0);
  }
}

/* Of matrices as they are, by rows: the last number of threads does not divide them. */
static void test_rows(void **unused) {
  static const struct layout layouts[] = {
      {ACCEL_BF16, 96, 160, true}, {ACCEL_BF16, 33, 65, true}, {ACCEL_BF16, 65, 70, false}};
  (void)unused;
  fill(b, low_b, MOST, 1);
  for (size_t i = 0; i < 4 * sizeof layouts / sizeof *layouts; i++) {
    const struct layout *l = &layouts[i / 4];
    const int threads[] = {1, 2, 3, 5};
    struct accel_gemm p = gemm_of(l);
    p.weights = 0;
    p.in_parts = true;
    omp_set_num_threads(threads[i % 4]);
    if (accel_open_gemm(&p)) assert_int_equal(p.packed != NULL, i % 4 == 1 || i % 4 == 2);
    fill(a, low_a, ROWS * l->depth, 7);
    for (int which = 0; which < 3; which++) check(l, &p, which, 1);
    assert_int_equal(accel_onednn_status(), 0);
  }
}

static void test_no_space(void **unused) {
  const struct layout l = {ACCEL_F32, 96, 160, true};
  struct accel_gemm p = gemm_of(&l);
  (void)unused;
  accel_keep_packed(storage, 4 * 96 * 160);
  assert_true(accel_open_gemm(&p));
  assert_null(p.packed);
  fill(a, low_a, ROWS * l.depth, 7);
  fill(b, low_b, MOST, 1);
  check(&l, &p, 1, 1);
}

/* ---- One row ---- */

static float drawn(int64_t index) {
  const struct philox_block block = rt_philox_block(5, 1, (uint64_t)index / 4);
  return (float)block.word[index % 4] * 0x1p-31f - 1;
}

/* Each number of y is within the roundings of its 16 sums; `before`: what is added to, or NULL. */
static void check_row(int64_t columns, int64_t depth, const float *found, const float *x, const float *w, int64_t step,
                      const float *before) {
  const double roundings = (double)(depth / 16 + 8) * 0x1p-24;
  for (int64_t j = 0; j < columns; j++) {
    double sum = before != NULL ? (double)before[j] : 0, size = fabs(sum);
    for (int64_t k = 0; k < depth; k++) {
      const double product = (double)x[k] * (double)w[j * step + k];
      sum += product;
      size += fabs(product);
    }
    if (!(fabs((double)found[j] - sum) <= roundings * size))
      fail_msg("y[%d] is %g, not %g", (int)j, (double)found[j], sum);
  }
}

#if RT_WIDE
typedef void dots_function(int64_t depth, const float *x, const float *b, int64_t stream, float *sums);
extern dots_function rt_row_dots_v3, rt_row_dots_v4; /* of runtime/onednn/row.c */

/* What one form of the processor makes of lines 0, 16, 32 and 48. */
static void check_form(dots_function *dots, int64_t depth, const float *x, const float *w, int64_t step,
                       const float *all) {
  float sums[4];
  dots(depth, x, w, 16 * step, sums);
  for (int s = 0; s < 4; s++) assert_memory_equal(&sums[s], &all[16 * s], sizeof *sums);
}
#endif

/* Lines of whole registers and with a rest, next to each other and with space between, whole streams and a rest. */
static void test_one_row(void **unused) {
  enum { MOST_COLUMNS = 1100, MOST_DEPTH = 1048, SPACE = 24 };
  static const int64_t shapes[][3] = {{1100, 512, 0}, {261, 1027, 0}, {1024, 256, SPACE}, {300, 1024, 7}};
  float *w = malloc(sizeof *w * MOST_COLUMNS * MOST_DEPTH);
  static float x[MOST_DEPTH], before[MOST_COLUMNS], first[MOST_COLUMNS], found[MOST_COLUMNS];
  (void)unused;
  assert_non_null(w);
  for (int64_t i = 0; i < (int64_t)MOST_COLUMNS * MOST_DEPTH; i++) w[i] = drawn(i);
  for (int64_t i = 0; i < MOST_DEPTH; i++) x[i] = drawn(-i - 1);
  for (int64_t i = 0; i < MOST_COLUMNS; i++) before[i] = drawn(-i - 9000);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const int64_t columns = shapes[i][0], depth = shapes[i][1], step = depth + shapes[i][2];
    for (int threads = 1; threads <= 5; threads++) {
      omp_set_num_threads(threads);
      for (int64_t j = 0; j < columns; j++) found[j] = NAN;
      accel_gemv(columns, depth, found, x, w, step, 0.0f);
      if (threads == 1) memcpy(first, found, sizeof first);
      assert_memory_equal(first, found, sizeof *first * (size_t)columns);
    }
    check_row(columns, depth, first, x, w, step, NULL);
#if RT_WIDE
    if (__builtin_cpu_supports("x86-64-v3")) check_form(rt_row_dots_v3, depth, x, w, step, first);
    if (__builtin_cpu_supports("x86-64-v4")) check_form(rt_row_dots_v4, depth, x, w, step, first);
#endif
    memcpy(found, before, sizeof found);
    accel_gemv(columns, depth, found, x, w, step, 1.0f);
    check_row(columns, depth, found, x, w, step, before);
  }
  free(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_gemms), cmocka_unit_test(test_rows),
                                     cmocka_unit_test(test_no_space), cmocka_unit_test(test_one_row)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
