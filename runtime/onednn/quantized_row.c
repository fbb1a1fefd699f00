#include "runtime/onednn/quantized_row.h"

#include "runtime/base/half.h"
#include "runtime/base/wide.h"
#include "runtime/onednn/lines.h"

#include <stddef.h>

#if RT_WIDE
#include <immintrin.h>
#endif

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
#define FOR_AVX2 __attribute__((target("arch=x86-64-v3")))
#define FOR_AVX512 __attribute__((target("arch=x86-64-v4")))
#define INLINED static inline __attribute__((always_inline))

/* A loop whose sums are registers: gcc unrolls at -O2 what it is told to. */
#ifdef __clang__
#define EACH_ROW for (int r = 0; r < ROWS; r++)
#else
#define EACH_ROW _Pragma("GCC unroll 4") for (int r = 0; r < ROWS; r++)
#endif

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

/* The sum of each of four registers of four lanes. */
FOR_AVX2 INLINED __m128 sums_of_4(const __m128 lanes[ROWS]) {
  __m128 a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
  _MM_TRANSPOSE4_PS(a, b, c, d);
  return _mm_add_ps(_mm_add_ps(a, c), _mm_add_ps(b, d));
}

/* ---- AVX2 ---- */

/* Levels of 8 codes, which are the lower halves of bytes: of the lower 8 levels or of the upper ones, by bit 3. */
FOR_AVX2 INLINED __m256 levels_of_8(__m256i codes, const __m256 levels[2]) {
  const __m256 bit = _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(levels[0], codes), _mm256_permutevar8x32_ps(levels[1], codes), bit);
}

/* As `rounded`, of numbers. */
FOR_AVX2 INLINED __m256 rounded_avx2(enum accel_element type, __m256 x) {
  if (type == ACCEL_F32) return x;
  if (type == ACCEL_F16) return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  const __m256i bits = _mm256_castps_si256(x),
                last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_srli_epi32(up, 16), 16));
}

/* Adds the products of a block of one row; the levels are multiplied by its scale before its elements are read from
 * them. */
FOR_AVX2 INLINED void add_block_avx2(enum accel_element type, __m256 sums[2], const float *x, const uint8_t *codes,
                                     const __m256 levels[2], float scale) {
  const __m256 factor = _mm256_set1_ps(scale);
  const __m256 own[2] = {rounded_avx2(type, _mm256_mul_ps(levels[0], factor)),
                         rounded_avx2(type, _mm256_mul_ps(levels[1], factor))};
  for (int i = 0; i < BLOCK; i += 16) {
    const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(codes + i / 2)));
    const __m256 first = levels_of_8(_mm256_srli_epi32(bytes, 4), own), second = levels_of_8(bytes, own);
    sums[0] = _mm256_fmadd_ps(first, _mm256_loadu_ps(x + i), sums[0]);
    sums[1] = _mm256_fmadd_ps(second, _mm256_loadu_ps(x + i + 8), sums[1]);
  }
}

FOR_AVX2 INLINED void dots_avx2_of(enum accel_element type, const float *x, const struct rt_code_rows *rows,
                                   const float *levels, float *sums) {
  const __m256 all[2] = {_mm256_loadu_ps(levels), _mm256_loadu_ps(levels + 8)};
  __m256 parts[ROWS][2];
  __m128 lanes[ROWS];
  EACH_ROW parts[r][0] = parts[r][1] = _mm256_setzero_ps();
  for (int64_t b = 0; b < rows->blocks; b++) EACH_ROW
  add_block_avx2(type, parts[r], x + b * BLOCK, rows->codes[r] + b * BYTES, all, rows->scales[r][b]);
  EACH_ROW {
    const __m256 both = _mm256_add_ps(parts[r][0], parts[r][1]);
    lanes[r] = _mm_add_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1));
  }
  _mm_storeu_ps(sums, sums_of_4(lanes));
}

FOR_AVX2 static void dots_avx2(enum accel_element type, const float *x, const struct rt_code_rows *rows,
                               const float *levels, float *sums){FOR_TYPES(dots_avx2_of, type, x, rows, levels, sums)}

/* ---- AVX-512 ---- */

FOR_AVX512 INLINED __m512 rounded_avx512(enum accel_element type, __m512 x) {
  if (type == ACCEL_F32) return x;
  if (type == ACCEL_F16) return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  const __m512i bits = _mm512_castps_si512(x),
                last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), last);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_srli_epi32(up, 16), 16));
}

/* The same by one permutation for 16 elements, which takes the lower 4 bits of an index alone. */
FOR_AVX512 INLINED void add_block_avx512(enum accel_element type, __m512 sums[2], const float *x, const uint8_t *codes,
                                         __m512 levels, float scale) {
  const __m512 own = rounded_avx512(type, _mm512_mul_ps(levels, _mm512_set1_ps(scale)));
  for (int i = 0; i < BLOCK; i += 32) {
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(codes + i / 2)));
    const __m512 first = _mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), own);
    sums[0] = _mm512_fmadd_ps(first, _mm512_loadu_ps(x + i), sums[0]);
    sums[1] = _mm512_fmadd_ps(_mm512_permutexvar_ps(bytes, own), _mm512_loadu_ps(x + i + 16), sums[1]);
  }
}

FOR_AVX512 INLINED void dots_avx512_of(enum accel_element type, const float *x, const struct rt_code_rows *rows,
                                       const float *levels, float *sums) {
  const __m512 all = _mm512_loadu_ps(levels);
  __m512 parts[ROWS][2];
  __m128 lanes[ROWS];
  EACH_ROW parts[r][0] = parts[r][1] = _mm512_setzero_ps();
  for (int64_t b = 0; b < rows->blocks; b++) EACH_ROW
  add_block_avx512(type, parts[r], x + b * BLOCK, rows->codes[r] + b * BYTES, all, rows->scales[r][b]);
  EACH_ROW {
    const __m512 both = _mm512_add_ps(parts[r][0], parts[r][1]);
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(both), _mm512_extractf32x8_ps(both, 1));
    lanes[r] = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  }
  _mm_storeu_ps(sums, sums_of_4(lanes));
}

FOR_AVX512 static void dots_avx512(enum accel_element type, const float *x, const struct rt_code_rows *rows,
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

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

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
    const int64_t own = least(TOGETHER, gemm->out - row);
    float sums[TOGETHER];
    for (int64_t r = 0; r < own; r += ROWS)
      multiply_rows(gemm, levels, ordered, codes, scales, row + r, least(ROWS, own - r), sums + r);
    rt_store_lines(gemm->type, gemm->accumulate, (char *)y + row * size, own, sums, own, 1, own);
  }
}
