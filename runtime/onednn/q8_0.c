#include "include/accel/q8_0_gemm.h"

#include "runtime/base/half.h"
#include "runtime/base/linear_codes.h"
#include "runtime/onednn/lanes.h"
#include "runtime/onednn/lines.h"
#include "runtime/onednn/q8_0.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* codes are rounded as their definition says */
#endif

enum { BLOCK = RT_STEPS, ROWS = RT_Q8_0_ROWS, LANES = 8, HALF_BYTES = sizeof(uint16_t) };

/* ---- The form of x ---- */

/* Elements of type `type` from i on, of which a block has 32. */
RT_INLINED void widen_block(enum accel_element type, const void *x, int64_t i, float to[BLOCK]) {
  if (type == ACCEL_F32)
    memcpy(to, (const float *)x + i, BLOCK * sizeof *to);
  else
    rt_widen_lines(type, to, BLOCK, (const uint16_t *)x + i, BLOCK, 1, BLOCK);
}

/* 32 codes, and their scale as it is stored. Bits of magnitudes are ordered as these are, and those of a NaN are above
 * all: then it is the scale. */
RT_INLINED void rt_q8_0_block_body(const float *x, int8_t *codes, float *scale) {
  uint32_t most = 0;
  float largest;
#pragma omp simd reduction(max : most)
  for (int i = 0; i < BLOCK; i++) {
    const float own = fabsf(x[i]);
    uint32_t bits;
    memcpy(&bits, &own, sizeof bits);
    most = bits > most ? bits : most;
  }
  memcpy(&largest, &most, sizeof largest);
  const float step = largest / 127, inverse = 1 / step;
  const float factor = inverse <= 3.40282347e38f ? inverse : 0; /* also of a NaN */
#pragma omp simd
  for (int i = 0; i < BLOCK; i++) {
    const float size = fabsf(x[i] * factor), kept = size < 128 ? size : 0;
    const int32_t below = (int32_t)kept, code = below + (kept - (float)below >= 0.5f);
    codes[i] = (int8_t)(x[i] < 0 ? -code : code);
  }
  *scale = step;
}

RT_FOR_WIDTHS(rt_q8_0_block, (const float *x, int8_t *codes, float *scale), (x, codes, scale))

static void quantize_row(const struct accel_q8_0_gemm *gemm, const void *x, int64_t row, int8_t *codes, float *scales) {
  for (int64_t i = 0; i < gemm->in; i += BLOCK) {
    float block[BLOCK];
    widen_block(gemm->type, x, row * gemm->in + i, block);
    rt_q8_0_block(block, codes + i, scales + i / BLOCK);
  }
  for (int64_t b = 0; b < gemm->in / BLOCK; b++) scales[b] = rt_widen_float16(rt_narrow_float16(scales[b]));
}

/* ---- Four rows of W by a row of x ---- */

static inline int64_t bytes_of(enum accel_codes as) {
  return HALF_BYTES + (as == ACCEL_CODES_Q8_0 ? BLOCK : BLOCK / 2);
}

static float half_at(const uint8_t *bytes) {
  uint16_t half;
  memcpy(&half, bytes, sizeof half);
  return rt_widen_float16(half);
}

static inline int code_at(enum accel_codes as, const uint8_t *codes, int i) {
  if (as == ACCEL_CODES_Q8_0) return ((const int8_t *)codes)[i];
  return i < BLOCK / 2 ? (codes[i] & 15) - 8 : (codes[i - BLOCK / 2] >> 4) - 8;
}

static float dot_plain(enum accel_codes as, const int8_t *x, const float *scales, const uint8_t *codes,
                       int64_t blocks) {
  enum { TOGETHER = BLOCK / LANES };
  float parts[LANES] = {0};
  for (int64_t b = 0; b < blocks; b++, codes += bytes_of(as), x += BLOCK)
    for (int i = 0; i < LANES; i++) {
      int sum = 0;
      for (int k = 0; k < TOGETHER; k++) sum += x[i * TOGETHER + k] * code_at(as, codes + HALF_BYTES, i * TOGETHER + k);
      parts[i] = fmaf((float)sum, half_at(codes) * scales[b], parts[i]);
    }
  for (int width = LANES / 2; width > 0; width /= 2)
    for (int i = 0; i < width; i++) parts[i] += parts[i + width];
  return parts[0];
}

static void dots_plain_q8_0(const int8_t *x, const float *scales, const struct rt_q8_0_rows *rows, float *sums) {
  for (int r = 0; r < ROWS; r++) sums[r] = dot_plain(ACCEL_CODES_Q8_0, x, scales, rows->codes[r], rows->blocks);
}

static void dots_plain_q4_0(const int8_t *x, const float *scales, const struct rt_q8_0_rows *rows, float *sums) {
  for (int r = 0; r < ROWS; r++) sums[r] = dot_plain(ACCEL_CODES_Q4_0, x, scales, rows->codes[r], rows->blocks);
}

#if RT_WIDE
#define FOR_VNNI __attribute__((target("arch=x86-64-v4,avx512vnni")))

/* The scale of 32 codes, which is before them, in all lanes. */
RT_FOR_AVX2 RT_INLINED __m256 scale_of(const uint8_t *block) {
  short half;
  memcpy(&half, block, sizeof half);
  return _mm256_cvtph_ps(_mm_set1_epi16(half));
}

/* 32 codes of 4 bits, from 0 to 15. */
RT_FOR_AVX2 RT_INLINED __m256i halves_of(const uint8_t *codes) {
  const __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)codes));
  return _mm256_and_si256(_mm256_srlv_epi64(both, _mm256_setr_epi64x(0, 0, 4, 4)), _mm256_set1_epi8(15));
}

/* Sums of four products of codes, by the instruction that sums two in 16 bits: a product is that of the magnitude of
 * one code and of the other with its sign, 128 times 127 at most. */
RT_FOR_AVX2 RT_INLINED __m256i products_avx2(enum accel_codes as, __m256i x, const uint8_t *codes) {
  const __m256i own = as == ACCEL_CODES_Q8_0 ? _mm256_loadu_si256((const __m256i *)codes)
                                             : _mm256_sub_epi8(halves_of(codes), _mm256_set1_epi8(8));
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(own), _mm256_sign_epi8(x, own));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

RT_FOR_AVX2 RT_INLINED void dots_avx2(enum accel_codes as, const int8_t *x, const float *scales,
                                      const struct rt_q8_0_rows *rows, float *sums) {
  __m256 parts[ROWS];
  __m128 lanes[ROWS];
  RT_EACH_OF_4_ROWS parts[r] = _mm256_setzero_ps();
  for (int64_t b = 0; b < rows->blocks; b++) {
    const int64_t at = b * bytes_of(as);
    const __m256i own = _mm256_loadu_si256((const __m256i *)(x + b * BLOCK));
    const __m256 scale = _mm256_broadcast_ss(scales + b);
    if (rows->ahead != NULL) rt_read_ahead(rows->ahead + ROWS * at, ROWS * bytes_of(as));
    RT_EACH_OF_4_ROWS {
      const uint8_t *block = rows->codes[r] + at;
      const __m256 sum = _mm256_cvtepi32_ps(products_avx2(as, own, block + HALF_BYTES));
      parts[r] = _mm256_fmadd_ps(sum, _mm256_mul_ps(scale, scale_of(block)), parts[r]);
    }
  }
  RT_EACH_OF_4_ROWS lanes[r] = rt_quarter_lanes(parts[r]);
  _mm_storeu_ps(sums, rt_sum_lanes(lanes));
}

/* 32 codes of W, 128 more than those of 8 bits and 8 more than those of 4 bits, so that none has a sign. */
RT_FOR_AVX2 RT_INLINED __m256i raised(enum accel_codes as, const uint8_t *codes) {
  if (as == ACCEL_CODES_Q4_0) return halves_of(codes);
  return _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)codes), _mm256_set1_epi8((char)0x80));
}

/* The same by the instruction that sums four products of bytes without and with a sign. What is more than the codes is
 * taken from the sums of each block before. */
FOR_VNNI RT_INLINED void dots_vnni(enum accel_codes as, const int8_t *x, const float *scales,
                                   const struct rt_q8_0_rows *rows, float *sums) {
  const __m256i none = _mm256_setzero_si256(), more = _mm256_set1_epi8((char)(as == ACCEL_CODES_Q8_0 ? 128 : 8));
  __m256 parts[ROWS];
  __m128 lanes[ROWS];
  RT_EACH_OF_4_ROWS parts[r] = _mm256_setzero_ps();
  for (int64_t b = 0; b < rows->blocks; b++) {
    const int64_t at = b * bytes_of(as);
    const __m256i own = _mm256_loadu_si256((const __m256i *)(x + b * BLOCK));
    const __m256i before = _mm256_sub_epi32(none, _mm256_dpbusd_epi32(none, more, own));
    const __m256 scale = _mm256_broadcast_ss(scales + b);
    if (rows->ahead != NULL) rt_read_ahead(rows->ahead + ROWS * at, ROWS * bytes_of(as));
    RT_EACH_OF_4_ROWS {
      const uint8_t *block = rows->codes[r] + at;
      const __m256 sum = _mm256_cvtepi32_ps(_mm256_dpbusd_epi32(before, raised(as, block + HALF_BYTES), own));
      parts[r] = _mm256_fmadd_ps(sum, _mm256_mul_ps(scale, scale_of(block)), parts[r]);
    }
  }
  RT_EACH_OF_4_ROWS lanes[r] = rt_quarter_lanes(parts[r]);
  _mm_storeu_ps(sums, rt_sum_lanes(lanes));
}

RT_FOR_AVX2 static void dots_avx2_q8_0(const int8_t *x, const float *scales, const struct rt_q8_0_rows *rows,
                                       float *sums) {
  dots_avx2(ACCEL_CODES_Q8_0, x, scales, rows, sums);
}

RT_FOR_AVX2 static void dots_avx2_q4_0(const int8_t *x, const float *scales, const struct rt_q8_0_rows *rows,
                                       float *sums) {
  dots_avx2(ACCEL_CODES_Q4_0, x, scales, rows, sums);
}

FOR_VNNI static void dots_vnni_q8_0(const int8_t *x, const float *scales, const struct rt_q8_0_rows *rows,
                                    float *sums) {
  dots_vnni(ACCEL_CODES_Q8_0, x, scales, rows, sums);
}

FOR_VNNI static void dots_vnni_q4_0(const int8_t *x, const float *scales, const struct rt_q8_0_rows *rows,
                                    float *sums) {
  dots_vnni(ACCEL_CODES_Q4_0, x, scales, rows, sums);
}
#endif

/* ---- All ---- */

bool rt_open_q8_0_gemm_as(struct accel_q8_0_gemm *gemm, enum rt_q8_0_form form) {
  const bool bytes = gemm->as == ACCEL_CODES_Q8_0;
#if RT_WIDE
  const bool vnni = __builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni");
  const bool avx2 = __builtin_cpu_supports("x86-64-v3");
  if ((form == RT_Q8_0_VNNI && !vnni) || (form == RT_Q8_0_AVX2 && !avx2)) return false;
  if (form == RT_Q8_0_VNNI || (form == RT_Q8_0_BEST && vnni)) {
    gemm->dots = bytes ? dots_vnni_q8_0 : dots_vnni_q4_0;
    return true;
  }
  if (form == RT_Q8_0_AVX2 || (form == RT_Q8_0_BEST && avx2)) {
    gemm->dots = bytes ? dots_avx2_q8_0 : dots_avx2_q4_0;
    return true;
  }
#endif
  gemm->dots = bytes ? dots_plain_q8_0 : dots_plain_q4_0;
  return form == RT_Q8_0_BEST || form == RT_Q8_0_PLAIN;
}

bool accel_open_q8_0_gemm(struct accel_q8_0_gemm *gemm) {
  return rt_open_q8_0_gemm_as(gemm, RT_Q8_0_BEST);
}

/* Four rows of W from `row` on, of so many that there are. */
static struct rt_q8_0_rows rows_from(const struct accel_q8_0_gemm *gemm, const uint8_t *codes, int64_t row,
                                     int64_t count) {
  const int64_t blocks = gemm->in / BLOCK, bytes = blocks * bytes_of(gemm->as);
  struct rt_q8_0_rows rows = {.blocks = blocks};
  for (int64_t r = 0; r < ROWS; r++) rows.codes[r] = codes + (row + (r < count ? r : 0)) * bytes;
#if RT_WIDE
  rows.ahead = rt_ahead_of(rows.codes[0], bytes);
#endif
  return rows;
}

void accel_multiply_q8_0(const struct accel_q8_0_gemm *gemm, void *y, int8_t *row_codes, float *row_scales,
                         const void *x, const uint8_t *codes) {
  enum { TOGETHER = 4 * ROWS }; /* numbers of y that are stored at a time */
  const int64_t size = gemm->type == ACCEL_F32 ? sizeof(float) : sizeof(uint16_t), blocks = gemm->in / BLOCK;
#pragma omp parallel for if (gemm->rows > 1)
  for (int64_t i = 0; i < gemm->rows; i++) quantize_row(gemm, x, i, row_codes + i * gemm->in, row_scales + i * blocks);
#pragma omp parallel for
  for (int64_t row = 0; row < gemm->out; row += TOGETHER) {
    const int64_t own = rt_least(TOGETHER, gemm->out - row);
    struct rt_q8_0_rows rows[TOGETHER / ROWS];
    for (int64_t r = 0; r < own; r += ROWS) rows[r / ROWS] = rows_from(gemm, codes, row + r, rt_least(ROWS, own - r));
    for (int64_t i = 0; i < gemm->rows; i++) {
      float sums[TOGETHER];
      for (int64_t r = 0; r < own; r += ROWS)
        gemm->dots(row_codes + i * gemm->in, row_scales + i * blocks, &rows[r / ROWS], sums + r);
      rt_store_lines(gemm->type, false, (char *)y + (i * gemm->out + row) * size, own, sums, own, 1, own);
    }
  }
}
