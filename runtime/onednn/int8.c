#include "include/accel/int8_gemm.h"

#include "runtime/base/half.h"
#include "runtime/base/wide.h"
#include "runtime/onednn/lines.h"
#include "runtime/onednn/onednn.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#if RT_WIDE
#include <immintrin.h>
#endif

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* codes and scales are rounded as bitsandbytes rounds them */
#endif

/* ---- The form of x ---- */

/* An element in float16, which bitsandbytes quantizes whatever the type of x is. */
RT_INLINED float halved(enum accel_element type, const void *x, int64_t i) {
  const uint16_t *low = x;
  if (type == ACCEL_F16) return rt_widen_float16(low[i]);
  const float wide = type == ACCEL_F32 ? ((const float *)x)[i] : rt_widen_bfloat16(low[i]);
  return rt_widen_float16(rt_narrow_float16(wide));
}

/* Marks those of `count` elements of a row that are outliers. */
RT_INLINED void mark_as(enum accel_element type, const void *x, int64_t count, float threshold, int32_t *marks) {
#pragma omp simd
  for (int64_t i = 0; i < count; i++) marks[i] |= fabsf(halved(type, x, i)) >= threshold;
}

RT_INLINED void rt_int8_mark_outliers_body(enum accel_element type, const void *x, int64_t count, float threshold,
                                           int32_t *marks) {
  if (type == ACCEL_F32)
    mark_as(ACCEL_F32, x, count, threshold, marks);
  else if (type == ACCEL_BF16)
    mark_as(ACCEL_BF16, x, count, threshold, marks);
  else
    mark_as(ACCEL_F16, x, count, threshold, marks);
}

/* gcc leaves loops as they are at -O2 unless it is told; clang refuses to be told of rintf on the first processors of
 * x86-64, and vectorizes it on others by itself. */
#ifdef __clang__
#define TELL_GCC
#else
#define TELL_GCC _Pragma("omp simd")
#endif

/* Codes of a row, by the largest magnitude of those that are no outliers; the code of these is 0. Bits of magnitudes
 * are ordered as these are, and those of a NaN are above all: then it is the scale. */
RT_INLINED void quantize_as(enum accel_element type, const void *x, int64_t count, float threshold, int8_t *codes,
                            float *scale) {
  uint32_t most = 0;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < count; i++) {
    const float own = fabsf(halved(type, x, i)), kept = own >= threshold ? 0 : own;
    uint32_t bits;
    memcpy(&bits, &kept, sizeof bits);
    most = bits > most ? bits : most;
  }
  memcpy(scale, &most, sizeof most);
  const float factor = *scale > 0 ? 1 / *scale * 127 : 0; /* in this order, as PyTorch divides 127 by a tensor */
  TELL_GCC
  for (int64_t i = 0; i < count; i++) {
    const float own = halved(type, x, i);
    codes[i] = (int8_t)rintf(fabsf(own) < threshold ? own * factor : 0);
  }
}

RT_INLINED void rt_int8_quantize_row_body(enum accel_element type, const void *x, int64_t count, float threshold,
                                          int8_t *codes, float *scale) {
  if (type == ACCEL_F32)
    quantize_as(ACCEL_F32, x, count, threshold, codes, scale);
  else if (type == ACCEL_BF16)
    quantize_as(ACCEL_BF16, x, count, threshold, codes, scale);
  else
    quantize_as(ACCEL_F16, x, count, threshold, codes, scale);
}

/* The sum of products of codes. */
RT_INLINED void rt_int8_dot_body(int32_t *to, const int8_t *a, const int8_t *b, int64_t count) {
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
  *to = sum;
}

/* Sums of products of codes by the scales of both: the constant is bitsandbytes' 1 / 127^2. */
RT_INLINED void rt_int8_scale_row_body(float *to, const int32_t *sums, float row_scale, const float *scales,
                                       int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; i++) to[i] = (float)sums[i] * (row_scale * scales[i]) * 6.200124e-05f;
}

RT_FOR_WIDTHS(rt_int8_mark_outliers,
              (enum accel_element type, const void *x, int64_t count, float threshold, int32_t *marks),
              (type, x, count, threshold, marks))
RT_FOR_WIDTHS(rt_int8_quantize_row,
              (enum accel_element type, const void *x, int64_t count, float threshold, int8_t *codes, float *scale),
              (type, x, count, threshold, codes, scale))
RT_FOR_WIDTHS(rt_int8_dot, (int32_t *to, const int8_t *a, const int8_t *b, int64_t count), (to, a, b, count))
RT_FOR_WIDTHS(rt_int8_scale_row, (float *to, const int32_t *sums, float row_scale, const float *scales, int64_t count),
              (to, sums, row_scale, scales, count))

#if RT_WIDE
/* The same by the instruction that sums products of bytes with and without a sign: 128 more than the codes of b have
 * none, and 128 times the codes of a is too much. */
__attribute__((target("arch=x86-64-v4,avx512vnni"))) static void dot_vnni(int32_t *to, const int8_t *a, const int8_t *b,
                                                                          int64_t count) {
  enum { LANES = 64 };
  const __m512i high = _mm512_set1_epi8((char)0x80), one = _mm512_set1_epi8(1);
  __m512i sums[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()}, more = _mm512_setzero_si512();
  int64_t i = 0;
  for (; i + 2 * LANES <= count; i += 2 * LANES)
    for (int k = 0; k < 2; k++) {
      const __m512i left = _mm512_loadu_si512(a + i + k * LANES), right = _mm512_loadu_si512(b + i + k * LANES);
      sums[k] = _mm512_dpbusd_epi32(sums[k], _mm512_xor_si512(right, high), left);
      more = _mm512_dpbusd_epi32(more, one, left);
    }
  const uint32_t sum = (uint32_t)_mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1]));
  *to = (int32_t)(sum - 128 * (uint32_t)_mm512_reduce_add_epi32(more));
  for (; i < count; i++) *to += a[i] * b[i];
}
#endif

typedef void dot_function(int32_t *to, const int8_t *a, const int8_t *b, int64_t count);

static dot_function *best_dot(void) {
#if RT_WIDE
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni")) return dot_vnni;
#endif
  return rt_int8_dot;
}

/* A product: its shape, and what is multiplied. */
struct product {
  const struct accel_int8_gemm *gemm;
  int64_t size; /* of an element of x and y, in bytes */
  char *y;
  const char *x;
  int8_t *row_codes;
  float *row_scales;
  int32_t *outliers; /* how many, and which */
  const int8_t *codes;
  const float *scales;
};

/* Columns that are marked become a list of them, in place. */
static void list_outliers(int32_t *outliers, int64_t in) {
  int32_t count = 0;
  for (int64_t i = 0; i < in; i++)
    if (outliers[1 + i] != 0) outliers[1 + count++] = (int32_t)i;
  outliers[0] = count;
}

/* Of so many rows. */
static void find_outliers(const struct product *p, int64_t rows) {
  enum { COLUMNS = 256 };
  const struct accel_int8_gemm *gemm = p->gemm;
  p->outliers[0] = 0;
  if (gemm->threshold == 0) return;
#pragma omp parallel for
  for (int64_t c = 0; c < gemm->in; c += COLUMNS) {
    const int64_t count = rt_least(COLUMNS, gemm->in - c);
    for (int64_t i = 0; i < count; i++) p->outliers[1 + c + i] = 0;
    for (int64_t r = 0; r < rows; r++)
      rt_int8_mark_outliers(gemm->type, p->x + (r * gemm->in + c) * p->size, count, gemm->threshold,
                            p->outliers + 1 + c);
  }
  list_outliers(p->outliers, gemm->in);
}

static void quantize_rows(const struct product *p) {
  const struct accel_int8_gemm *gemm = p->gemm;
  const float threshold = gemm->threshold == 0 ? INFINITY : gemm->threshold;
#pragma omp parallel for
  for (int64_t r = 0; r < gemm->rows; r++) {
    int8_t *codes = p->row_codes + r * gemm->in;
    rt_int8_quantize_row(gemm->type, p->x + r * gemm->in * p->size, gemm->in, threshold, codes, p->row_scales + r);
    for (int32_t i = 0; i < p->outliers[0]; i++) codes[p->outliers[1 + i]] = 0;
  }
}

/* ---- Outliers ---- */

/* Elements of x and of W, and numbers of y, in blocks of so many rows and columns, so many of a sum at a time. */
enum { ROWS = 64, ACROSS = 128, ALONG = 256 };

static float element(enum accel_element type, const void *x, int64_t i) {
  const uint16_t *low = x;
  if (type == ACCEL_F32) return ((const float *)x)[i];
  return type == ACCEL_BF16 ? rt_widen_bfloat16(low[i]) : rt_widen_float16(low[i]);
}

static float rounded(enum accel_element type, float x) {
  if (type == ACCEL_F32) return x;
  return type == ACCEL_BF16 ? rt_widen_bfloat16(rt_narrow_bfloat16(x)) : rt_widen_float16(rt_narrow_float16(x));
}

/* The element of W that an outlier meets. */
static float outlier_weight(const struct product *p, int64_t o, int64_t column) {
  const float scaled = (float)p->codes[o * p->gemm->in + column] * p->scales[o];
  return rounded(p->gemm->type, scaled * (float)(1.0 / 127));
}

/* Adds what outliers contribute to `sum`, rows from r on and columns of y from c on; what is there is rounded before.
 */
static void add_outliers(const struct product *p, float *sum, int64_t r, int64_t rows, int64_t c, int64_t columns) {
  const struct accel_int8_gemm *gemm = p->gemm;
  _Alignas(64) float left[ROWS * ALONG], right[ACROSS * ALONG];
  for (int64_t i = 0; i < rows * ACROSS; i++) sum[i] = rounded(gemm->type, sum[i]);
  for (int32_t k = 0; k < p->outliers[0]; k += ALONG) {
    const int32_t length = (int32_t)rt_least(ALONG, p->outliers[0] - k), *list = p->outliers + 1 + k;
    for (int64_t i = 0; i < rows; i++)
      for (int32_t j = 0; j < length; j++)
        left[i * ALONG + j] = element(gemm->type, p->x + (r + i) * gemm->in * p->size, list[j]);
    for (int64_t i = 0; i < columns; i++)
      for (int32_t j = 0; j < length; j++) right[i * ALONG + j] = outlier_weight(p, c + i, list[j]);
    rt_onednn_note(dnnl_sgemm('N', 'T', rows, columns, length, 1.0f, left, ALONG, right, ALONG, 1.0f, sum, ACROSS));
  }
}

/* ---- Blocks ---- */

static void widen(float *to, const int8_t *codes, int64_t line, int64_t lines, int64_t length) {
  for (int64_t i = 0; i < lines; i++)
#pragma omp simd
    for (int64_t k = 0; k < length; k++) to[i * ALONG + k] = codes[i * line + k];
}

/* Sums of codes as floats, which hold all whole numbers up to 2^24: those of EXACT products of two codes. */
static void multiply_as_floats(const struct product *p, int32_t *sums, int64_t r, int64_t rows, int64_t c,
                               int64_t columns) {
  enum { EXACT = 4 * ALONG };
  _Static_assert(EXACT * 127 * 127 <= 1 << 24, "no sum is rounded");
  const int64_t in = p->gemm->in;
  _Alignas(64) float left[ROWS * ALONG], right[ACROSS * ALONG], part[ROWS * ACROSS];
  for (int64_t i = 0; i < rows * ACROSS; i++) sums[i] = 0;
  for (int64_t k = 0; k < in; k += ALONG) {
    const int64_t length = rt_least(ALONG, in - k);
    widen(left, p->row_codes + r * in + k, in, rows, length);
    widen(right, p->codes + c * in + k, in, columns, length);
    rt_onednn_note(dnnl_sgemm('N', 'T', rows, columns, length, 1.0f, left, ALONG, right, ALONG,
                              k % EXACT != 0 ? 1.0f : 0.0f, part, ACROSS));
    if (k + length < in && (k + ALONG) % EXACT != 0) continue;
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) sums[i * ACROSS + j] += (int32_t)part[i * ACROSS + j];
  }
}

static void multiply_codes(const struct product *p, int32_t *sums, int64_t r, int64_t rows, int64_t c,
                           int64_t columns) {
  static const int32_t none = 0;
  const int64_t in = p->gemm->in;
  if (p->gemm->native)
    rt_onednn_note(dnnl_gemm_s8s8s32('N', 'T', 'F', rows, columns, in, 1.0f, p->row_codes + r * in, in, 0,
                                     p->codes + c * in, in, 0, 0.0f, sums, ACROSS, &none));
  else
    multiply_as_floats(p, sums, r, rows, c, columns);
}

static void multiply_block(const struct product *p, int64_t r, int64_t rows, int64_t c, int64_t columns) {
  const struct accel_int8_gemm *gemm = p->gemm;
  _Alignas(64) int32_t sums[ROWS * ACROSS];
  _Alignas(64) float sum[ROWS * ACROSS];
  multiply_codes(p, sums, r, rows, c, columns);
  for (int64_t i = 0; i < rows; i++)
    rt_int8_scale_row(sum + i * ACROSS, sums + i * ACROSS, p->row_scales[r + i], p->scales + c, columns);
  if (p->outliers[0] > 0) add_outliers(p, sum, r, rows, c, columns);
  rt_store_lines(gemm->type, false, p->y + (r * gemm->out + c) * p->size, gemm->out, sum, ACROSS, rows, columns);
}

/* One row: each code of W is read into a register, and nowhere else. */
static void multiply_row(const struct product *p, int64_t c, int64_t columns) {
  const struct accel_int8_gemm *gemm = p->gemm;
  dot_function *const dot = best_dot();
  int32_t sums[ACROSS];
  float sum[ACROSS] = {0};
  for (int64_t i = 0; i < columns; i++) dot(&sums[i], p->row_codes, p->codes + (c + i) * gemm->in, gemm->in);
  rt_int8_scale_row(sum, sums, p->row_scales[0], p->scales + c, columns);
  if (p->outliers[0] > 0) add_outliers(p, sum, 0, 1, c, columns);
  rt_store_lines(gemm->type, false, p->y + c * p->size, gemm->out, sum, ACROSS, 1, columns);
}

/* ---- All ---- */

/* oneDNN multiplies int8 by instructions that saturate sums of two products in 16 bits where the processor has no
 * others: it says so by the largest ones. */
static bool is_exact(void) {
  enum { SIDE = 16, DEPTH = 64 };
  static const int32_t none = 0;
  int8_t a[SIDE * DEPTH];
  int32_t y[SIDE * SIDE];
  for (int i = 0; i < SIDE * DEPTH; i++) a[i] = 127;
  if (dnnl_gemm_s8s8s32('N', 'T', 'F', SIDE, SIDE, DEPTH, 1.0f, a, DEPTH, 0, a, DEPTH, 0, 0.0f, y, SIDE, &none) !=
      dnnl_success)
    return false;
  for (int i = 0; i < SIDE * SIDE; i++)
    if (y[i] != DEPTH * 127 * 127) return false;
  return true;
}

bool accel_open_int8_gemm(struct accel_int8_gemm *gemm) {
  gemm->native = is_exact();
  gemm->threshold = rounded(ACCEL_F16, gemm->threshold);
  return true;
}

void accel_multiply_int8(const struct accel_int8_gemm *gemm, void *y, int8_t *row_codes, float *row_scales,
                         int32_t *outliers, const void *x, const int8_t *codes, const float *scales,
                         const int32_t *valid) {
  const int64_t size = gemm->type == ACCEL_F32 ? sizeof(float) : sizeof(uint16_t);
  const struct product product = {gemm, size, y, x, row_codes, row_scales, outliers, codes, scales};
  const int64_t across = (gemm->out + ACROSS - 1) / ACROSS, blocks = (gemm->rows + ROWS - 1) / ROWS * across;
  find_outliers(&product, valid != NULL ? rt_least(valid[0], gemm->rows) : gemm->rows);
  quantize_rows(&product);
#pragma omp parallel for
  for (int64_t block = 0; block < blocks; block++) {
    const int64_t r = block / across * ROWS, c = block % across * ACROSS;
    if (gemm->rows == 1)
      multiply_row(&product, c, rt_least(ACROSS, gemm->out - c));
    else
      multiply_block(&product, r, rt_least(ROWS, gemm->rows - r), c, rt_least(ACROSS, gemm->out - c));
  }
}
