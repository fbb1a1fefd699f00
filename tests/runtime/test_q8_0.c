/* Products of GGUF's blocks by every form of a processor: the same bits, and those that whole numbers give in double.
 */
#include "cmocka_all.h"

#include "runtime/base/half.h"
#include "runtime/onednn/q8_0.h"
#include "runtime/random/philox.h"

#include <math.h>
#include <string.h>

enum { ROWS = 3, OUT = 21, BLOCKS = 9, IN = 32 * BLOCKS, MOST_BYTES = 34, HALF_BYTES = 2 };

static uint32_t drawn(uint64_t index) {
  struct philox_block block = rt_philox_block(9, 1, index / 4);
  return block.word[index % 4];
}

/* Codes of any value, the least and the greatest of both signs often, and scales of both signs. */
static void draw_codes(uint8_t *codes, int64_t bytes) {
  static const uint8_t often[] = {0x80, 0x7f, 0x81, 0xff};
  for (int64_t b = 0; b < (int64_t)OUT * BLOCKS; b++) {
    const uint16_t half = rt_narrow_float16((float)(drawn((uint64_t)b) % 2001) / 1000 - 1);
    memcpy(codes + b * bytes, &half, sizeof half);
    for (int64_t i = HALF_BYTES; i < bytes; i++) {
      const uint32_t word = drawn((uint64_t)(b * bytes + i) + 100000);
      codes[b * bytes + i] = word >> 31 != 0 ? often[word % 4] : (uint8_t)(word >> 8);
    }
  }
}

static int code_at(enum accel_codes as, const uint8_t *block, int i) {
  const uint8_t *codes = block + HALF_BYTES;
  if (as == ACCEL_CODES_Q8_0) return (int8_t)codes[i];
  return (i < 16 ? codes[i] & 15 : codes[i - 16] >> 4) - 8;
}

/* The sum over blocks, whose terms double holds, from the codes of x that the product has made. */
static double wanted(enum accel_codes as, const int8_t *x, const float *scales, const uint8_t *codes, double *size) {
  const int bytes = as == ACCEL_CODES_Q8_0 ? 34 : 18;
  double sum = 0;
  *size = 0;
  for (int b = 0; b < BLOCKS; b++) {
    const uint8_t *block = codes + b * bytes;
    uint16_t half;
    int whole = 0;
    memcpy(&half, block, sizeof half);
    for (int i = 0; i < 32; i++) whole += x[b * 32 + i] * code_at(as, block, i);
    const double term = (double)scales[b] * (double)rt_widen_float16(half) * whole;
    sum += term;
    for (int i = 0; i < 32; i++)
      *size += fabs((double)scales[b] * (double)rt_widen_float16(half) * x[b * 32 + i] * code_at(as, block, i));
  }
  return sum;
}

static void check(enum accel_codes as) {
  const int64_t bytes = as == ACCEL_CODES_Q8_0 ? 34 : 18;
  static float x[ROWS * IN], y[3][ROWS * OUT], scales[ROWS * BLOCKS];
  static uint8_t codes[OUT * BLOCKS * MOST_BYTES];
  static int8_t x_codes[ROWS * IN];
  int forms = 0;
  draw_codes(codes, bytes);
  for (int i = 0; i < ROWS * IN; i++)
    x[i] = (float)((int)(drawn((uint64_t)i + 900000) % 4001) - 2000) / (i / 32 % 3 == 0 ? 0.5f : 700);
  for (enum rt_q8_0_form form = RT_Q8_0_PLAIN; form <= RT_Q8_0_VNNI; form++) {
    struct accel_q8_0_gemm gemm = {.type = ACCEL_F32, .rows = ROWS, .out = OUT, .in = IN, .as = as};
    if (!rt_open_q8_0_gemm_as(&gemm, form)) continue;
    accel_multiply_q8_0(&gemm, y[forms], x_codes, scales, x, codes);
    assert_memory_equal(y[0], y[forms], sizeof y[0]);
    forms++;
  }
  for (int r = 0; r < ROWS; r++)
    for (int o = 0; o < OUT; o++) {
      double size;
      const double sum = wanted(as, x_codes + r * IN, scales + r * BLOCKS, codes + o * BLOCKS * bytes, &size);
      assert_true(fabs((double)y[0][r * OUT + o] - sum) <= 1e-6 * size);
    }
  assert_true(forms >= 1);
}

static void forms_are_alike(void **state) {
  (void)state;
  check(ACCEL_CODES_Q8_0);
  check(ACCEL_CODES_Q4_0);
}

/* Ties are away from zero; a block of zeros has no scale; a NaN makes its block NaN, and no code of it undefined. */
static void x_is_quantized(void **state) {
  (void)state;
  float x[64] = {127, 0.5f, -0.5f, 1.5f, -1.5f, 0.49999997f, 126.5f, -126.49999f}, scales[2], y;
  static const int8_t codes[] = {127, 1, -1, 2, -2, 0, 127, -126};
  int8_t x_codes[64];
  uint8_t w[68] = {0};
  struct accel_q8_0_gemm gemm = {.type = ACCEL_F32, .rows = 1, .out = 1, .in = 64, .as = ACCEL_CODES_Q8_0};
  assert_true(accel_open_q8_0_gemm(&gemm));
  accel_multiply_q8_0(&gemm, &y, x_codes, scales, x, w);
  assert_memory_equal(x_codes, codes, sizeof codes);
  assert_true(scales[0] == 1 && scales[1] == 0 && y == 0);
  x[40] = NAN;
  accel_multiply_q8_0(&gemm, &y, x_codes, scales, x, w);
  assert_true(isnan(y));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forms_are_alike), cmocka_unit_test(x_is_quantized)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
