#include "runtime/onednn/quantized_row.h"

#include "runtime/base/half.h"
#include "runtime/onednn/lanes.h"
#include "runtime/onednn/lines.h"

#include <stddef.h>

enum { BLOCK = ACCEL_QUANTIZED_BLOCK, BYTES = BLOCK / 2, ROWS = RT_ROWS_AT_ONCE };

static float rounded(enum accel_element type, float x) {
  if (type == ACCEL_F32) return x;
  return type == ACCEL_BF16 ? rt_widen_bfloat16(rt_narrow_bfloat16(x)) : rt_widen_float16(rt_narrow_float16(x));
}

static void dots_plain(enum accel_element type, const float *x, const struct rt_code_rows *rows, const float *levels,
                       float *sums) {
  for (int r = 0; r < ROWS; r++) {
    float sum = 0, own[LEVELS_4];
    for (int64_t b = 0; b < rows->blocks; b++) {
      for (int i = 0; i < LEVELS_4; i++) own[i] = rounded(type, levels[i] * rows->scales[r][b]);
      for (int i = 0; i < BLOCK; i++) sum += x[b * BLOCK + i] * own[rt_code_4(rows->codes[r] + b * BYTES, i)];
    }
    sums[r] = sum;
  }
}

#if RT_WIDE
/* Calls a function for a constant type, so that its loops ask for none. */
#define FOR_TYPES(function, type, ...)                                                                                 \
  switch (type) {                                                                                                      \
  case ACCEL_F32:                                                                                                      \
    function(ACCEL_F32, __VA_ARGS__);                                                                                  \
    break;                                                                                                             \
  case ACCEL_BF16:                                                                                                     \
    function(ACCEL_BF16, __VA_ARGS__);                                                                                 \
    break;                                                                                                             \
  default:                                                                                                             \
    function(ACCEL_F16, __VA_ARGS__);                                                                                  \
  }

/* ---- AVX2 ---- */

/* As `rounded`, of numbers. */
RT_FOR_AVX2 RT_INLINED __m256 rounded_avx2(enum accel_element type, __m256 x) {
  if (type == ACCEL_F32) return x;
  if (type == ACCEL_F16) return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  const __m256i bits = _mm256_castps_si256(x),
                last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_srli_epi32(up, 16), 16));
}

/* Adds the products of a block of one row; the levels are multiplied by its scale before its elements are read from
 * them. */
RT_FOR_AVX2 RT_INLINED void add_block_avx2(enum accel_element type, __m256 sums[2], const float *x,
                                           const uint8_t *codes, const __m256 levels[2], float scale) {
  const __m256 factor = _mm256_set1_ps(scale);
  const __m256 own[2] = {rounded_avx2(type, _mm256_mul_ps(levels[0], factor)),
                         rounded_avx2(type, _mm256_mul_ps(levels[1], factor))};
  for (int i = 0; i < BLOCK; i += 16) {
    const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(codes + i / 2)));
    const __m256 first = rt_levels_of_8(_mm256_srli_epi32(bytes, 4), own), second = rt_levels_of_8(bytes, own);
    sums[0] = _mm256_fmadd_ps(first, _mm256_loadu_ps(x + i), sums[0]);
    sums[1] = _mm256_fmadd_ps(second, _mm256_loadu_ps(x + i + 8), sums[1]);
  }
}

RT_FOR_AVX2 RT_INLINED void dots_avx2_of(enum accel_element type, const float *x, const struct rt_code_rows *rows,
                                         const float *levels, float *sums) {
  const __m256 all[2] = {_mm256_loadu_ps(levels), _mm256_loadu_ps(levels + 8)};
  __m256 parts[ROWS][2];
  __m128 lanes[ROWS];
  RT_EACH_OF_4_ROWS parts[r][0] = parts[r][1] = _mm256_setzero_ps();
  for (int64_t b = 0; b < rows->blocks; b++) {
    if (rows->ahead != NULL) rt_read_ahead(rows->ahead + b * ROWS * BYTES, ROWS * BYTES);
    RT_EACH_OF_4_ROWS add_block_avx2(type, parts[r], x + b * BLOCK, rows->codes[r] + b * BYTES, all,
                                     rows->scales[r][b]);
  }
  RT_EACH_OF_4_ROWS lanes[r] = rt_quarter_lanes(_mm256_add_ps(parts[r][0], parts[r][1]));
  _mm_storeu_ps(sums, rt_sum_lanes(lanes));
}

RT_FOR_AVX2 static void dots_avx2(enum accel_element type, const float *x, const struct rt_code_rows *rows,
                                  const float *levels,
                                  float *sums){FOR_TYPES(dots_avx2_of, type, x, rows, levels, sums)}

/* ---- AVX-512 ---- */

RT_FOR_AVX512 RT_INLINED __m512 rounded_avx512(enum accel_element type, __m512 x) {
  if (type == ACCEL_F32) return x;
  if (type == ACCEL_F16) return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  const __m512i bits = _mm512_castps_si512(x),
                last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), last);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_srli_epi32(up, 16), 16));
}

/* The same by one permutation for 16 elements, which takes the lower 4 bits of an index alone. */
RT_FOR_AVX512 RT_INLINED void add_block_avx512(enum accel_element type, __m512 sums[2], const float *x,
                                               const uint8_t *codes, __m512 levels, float scale) {
  const __m512 own = rounded_avx512(type, _mm512_mul_ps(levels, _mm512_set1_ps(scale)));
  for (int i = 0; i < BLOCK; i += 32) {
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(codes + i / 2)));
    const __m512 first = _mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), own);
    sums[0] = _mm512_fmadd_ps(first, _mm512_loadu_ps(x + i), sums[0]);
    sums[1] = _mm512_fmadd_ps(_mm512_permutexvar_ps(bytes, own), _mm512_loadu_ps(x + i + 16), sums[1]);
  }
}

RT_FOR_AVX512 RT_INLINED void dots_avx512_of(enum accel_element type, const float *x, const struct rt_code_rows *rows,
                                             const float *levels, float *sums) {
  const __m512 all = _mm512_loadu_ps(levels);
  __m512 parts[ROWS][2];
  __m128 lanes[ROWS];
  RT_EACH_OF_4_ROWS parts[r][0] = parts[r][1] = _mm512_setzero_ps();
  for (int64_t b = 0; b < rows->blocks; b++) {
    if (rows->ahead != NULL) rt_read_ahead(rows->ahead + b * ROWS * BYTES, ROWS * BYTES);
    RT_EACH_OF_4_ROWS add_block_avx512(type, parts[r], x + b * BLOCK, rows->codes[r] + b * BYTES, all,
                                       rows->scales[r][b]);
  }
  RT_EACH_OF_4_ROWS lanes[r] = rt_quarter_lanes(rt_half_lanes(_mm512_add_ps(parts[r][0], parts[r][1])));
  _mm_storeu_ps(sums, rt_sum_lanes(lanes));
}

RT_FOR_AVX512 static void dots_avx512(enum accel_element type, const float *x, const struct rt_code_rows *rows,
                                      const float *levels, float *sums) {
  FOR_TYPES(dots_avx512_of, type, x, rows, levels, sums)
}
#endif

const struct rt_row_form *rt_row_form(void) {
  static const struct rt_row_form plain = {2, dots_plain};
#if RT_WIDE
  static const struct rt_row_form avx2 = {16, dots_avx2}, avx512 = {32, dots_avx512};
  if (__builtin_cpu_supports("x86-64-v4")) return &avx512;
  if (__builtin_cpu_supports("x86-64-v3")) return &avx2;
#endif
  return &plain;
}

/* ---- The row ---- */

/* Groups of x, of floats: elements of even places, then of odd ones. */
static void put_in_order(float *restrict to, const float *restrict x, int64_t count, int64_t group) {
  const int64_t half = group / 2;
  for (int64_t first = 0; first < count; first += group)
#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
      to[first + i] = x[first + 2 * i];
      to[first + half + i] = x[first + 2 * i + 1];
    }
}

/* Sums of the rows of W from `row` on, of so many that there are. */
static void multiply_rows(const struct accel_quantized_gemm *gemm, const float *levels, const float *x,
                          const uint8_t *codes, const struct rt_scales *scales, int64_t row, int64_t count,
                          float *sums) {
  enum { MOST = RT_MOST_IN_ROW / BLOCK };
  const int64_t blocks = gemm->in / BLOCK;
  float own[ROWS * MOST];
  struct rt_code_rows rows = {.blocks = blocks};
#if RT_WIDE
  rows.ahead = rt_ahead_of(codes + row * blocks * BYTES, blocks * BYTES);
#endif
  rt_block_scales(scales, row * blocks, count * blocks, own);
  for (int64_t r = 0; r < ROWS; r++) {
    const int64_t at = r < count ? r : 0;
    rows.codes[r] = codes + (row + at) * blocks * BYTES;
    rows.scales[r] = own + at * blocks;
  }
  gemm->form->dots(gemm->type, x, &rows, levels, sums);
}

void rt_multiply_quantized_row(const struct accel_quantized_gemm *gemm, const float *levels, void *y, const void *x,
                               const uint8_t *codes, const struct rt_scales *scales) {
  enum { TOGETHER = 4 * ROWS }; /* numbers of y that are stored at a time */
  const int64_t size = gemm->type == ACCEL_F32 ? sizeof(float) : sizeof(uint16_t);
  _Alignas(64) float ordered[RT_MOST_IN_ROW], wide[RT_MOST_IN_ROW];
  if (gemm->type != ACCEL_F32) rt_widen_lines(gemm->type, wide, gemm->in, x, gemm->in, 1, gemm->in);
  put_in_order(ordered, gemm->type == ACCEL_F32 ? x : wide, gemm->in, gemm->form->group);
#pragma omp parallel for
  for (int64_t row = 0; row < gemm->out; row += TOGETHER) {
    const int64_t own = rt_least(TOGETHER, gemm->out - row);
    float sums[TOGETHER];
    for (int64_t r = 0; r < own; r += ROWS)
      multiply_rows(gemm, levels, ordered, codes, scales, row + r, rt_least(ROWS, own - r), sums + r);
    rt_store_lines(gemm->type, gemm->accumulate, (char *)y + row * size, own, sums, own, 1, own);
  }
}
