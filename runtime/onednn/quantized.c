#include "include/accel/quantized_gemm.h"

#include "runtime/base/half.h"
#include "runtime/base/levels.h"
#include "runtime/base/wide.h"
#include "runtime/onednn/gemm.h"
#include "runtime/onednn/lines.h"
#include "runtime/onednn/onednn.h"

#include <stddef.h>

#if RT_WIDE
#include <immintrin.h>
#endif

enum { BLOCK = ACCEL_QUANTIZED_BLOCK };

/* What differs between processors: the elements of a whole block; the sum of a row's products with x, of whole blocks.
 * x of the latter is in groups of `group` elements: first those whose codes are in the upper halves of bytes. */
struct accel_quantized_form {
  int64_t group;
  void (*widen)(float *to, const uint8_t *codes, const float *levels, float scale);
  float (*dot)(enum accel_element type, const float *x, const uint8_t *codes, const float *levels, const float *scales,
               int64_t blocks);
};

static float rounded(enum accel_element type, float x) {
  if (type == ACCEL_F32) return x;
  return type == ACCEL_BF16 ? rt_widen_bfloat16(rt_narrow_bfloat16(x)) : rt_widen_float16(rt_narrow_float16(x));
}

static void widen_plain(float *to, const uint8_t *codes, const float *levels, float scale) {
  for (int i = 0; i < BLOCK; i++) to[i] = levels[rt_code_4(codes, i)] * scale;
}

static float dot_plain(enum accel_element type, const float *x, const uint8_t *codes, const float *levels,
                       const float *scales, int64_t blocks) {
  float sum = 0, own[LEVELS_4];
  for (int64_t b = 0; b < blocks; b++) {
    for (int i = 0; i < LEVELS_4; i++) own[i] = rounded(type, levels[i] * scales[b]);
    for (int i = 0; i < BLOCK; i++) sum += x[b * BLOCK + i] * own[rt_code_4(codes + b * (BLOCK / 2), i)];
  }
  return sum;
}

#if RT_WIDE
#define FOR_AVX2 __attribute__((target("arch=x86-64-v3")))
#define FOR_AVX512 __attribute__((target("arch=x86-64-v4")))

/* 16 codes of 8 bytes, one in each byte, in their order. */
static inline __attribute__((always_inline)) __m128i spread(const uint8_t *codes) {
  const __m128i bytes = _mm_loadl_epi64((const __m128i *)codes), low = _mm_set1_epi8(15);
  return _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(bytes, 4), low), _mm_and_si128(bytes, low));
}

/* Levels of 8 codes, which are the lower halves of bytes: of the lower 8 levels or of the upper ones, by bit 3. */
FOR_AVX2 static inline __m256 levels_of_8(__m256i codes, __m256 lower, __m256 upper) {
  const __m256 bit = _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(lower, codes), _mm256_permutevar8x32_ps(upper, codes), bit);
}

FOR_AVX2 static void widen_avx2(float *to, const uint8_t *codes, const float *levels, float scale) {
  const __m256 lower = _mm256_loadu_ps(levels), upper = _mm256_loadu_ps(levels + 8), factor = _mm256_set1_ps(scale);
  for (int i = 0; i < BLOCK; i += 16) {
    const __m128i own = spread(codes + i / 2);
    const __m256i first = _mm256_cvtepu8_epi32(own), second = _mm256_cvtepu8_epi32(_mm_srli_si128(own, 8));
    _mm256_storeu_ps(to + i, _mm256_mul_ps(levels_of_8(first, lower, upper), factor));
    _mm256_storeu_ps(to + i + 8, _mm256_mul_ps(levels_of_8(second, lower, upper), factor));
  }
}

/* As `rounded`, of numbers. */
FOR_AVX2 static inline __m256 rounded_avx2(enum accel_element type, __m256 x) {
  if (type == ACCEL_F32) return x;
  if (type == ACCEL_F16) return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  const __m256i bits = _mm256_castps_si256(x),
                last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_srli_epi32(up, 16), 16));
}

/* Sums with 16 elements, eight of each half of their bytes. */
FOR_AVX2 static inline void add_16(__m256 sums[2], const float *x, const uint8_t *codes, __m256 lower, __m256 upper) {
  const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)codes));
  const __m256 first = levels_of_8(_mm256_srli_epi32(bytes, 4), lower, upper);
  sums[0] = _mm256_fmadd_ps(first, _mm256_loadu_ps(x), sums[0]);
  sums[1] = _mm256_fmadd_ps(levels_of_8(bytes, lower, upper), _mm256_loadu_ps(x + 8), sums[1]);
}

/* The levels of a block are multiplied by its scale before its elements are read from them. */
FOR_AVX2 static float dot_avx2(enum accel_element type, const float *x, const uint8_t *codes, const float *levels,
                               const float *scales, int64_t blocks) {
  const __m256 low = _mm256_loadu_ps(levels), high = _mm256_loadu_ps(levels + 8), zero = _mm256_setzero_ps();
  __m256 even[2] = {zero, zero}, odd[2] = {zero, zero};
  for (int64_t b = 0; b < blocks; b++, codes += BLOCK / 2, x += BLOCK) {
    const __m256 scale = _mm256_set1_ps(scales[b]);
    const __m256 lower = rounded_avx2(type, _mm256_mul_ps(low, scale));
    const __m256 upper = rounded_avx2(type, _mm256_mul_ps(high, scale));
    add_16(even, x, codes, lower, upper);
    add_16(odd, x + 16, codes + 8, lower, upper);
    add_16(even, x + 32, codes + 16, lower, upper);
    add_16(odd, x + 48, codes + 24, lower, upper);
  }
  float lanes[8], total = 0;
  _mm256_storeu_ps(lanes, _mm256_add_ps(_mm256_add_ps(even[0], even[1]), _mm256_add_ps(odd[0], odd[1])));
  for (int i = 0; i < 8; i++) total += lanes[i];
  return total;
}

FOR_AVX512 static void widen_avx512(float *to, const uint8_t *codes, const float *levels, float scale) {
  const __m512 all = _mm512_loadu_ps(levels), factor = _mm512_set1_ps(scale);
  for (int i = 0; i < BLOCK; i += 16) {
    const __m512i own = _mm512_cvtepu8_epi32(spread(codes + i / 2));
    _mm512_storeu_ps(to + i, _mm512_mul_ps(_mm512_permutexvar_ps(own, all), factor));
  }
}

FOR_AVX512 static inline __m512 rounded_avx512(enum accel_element type, __m512 x) {
  if (type == ACCEL_F32) return x;
  if (type == ACCEL_F16) return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  const __m512i bits = _mm512_castps_si512(x),
                last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), last);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_srli_epi32(up, 16), 16));
}

/* Sums with 32 elements. A permutation takes the lower 4 bits of an index alone. */
FOR_AVX512 static inline void add_32(__m512 sums[2], const float *x, const uint8_t *codes, __m512 levels) {
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)codes));
  const __m512 first = _mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), levels);
  sums[0] = _mm512_fmadd_ps(first, _mm512_loadu_ps(x), sums[0]);
  sums[1] = _mm512_fmadd_ps(_mm512_permutexvar_ps(bytes, levels), _mm512_loadu_ps(x + 16), sums[1]);
}

FOR_AVX512 static float dot_avx512(enum accel_element type, const float *x, const uint8_t *codes, const float *levels,
                                   const float *scales, int64_t blocks) {
  const __m512 all = _mm512_loadu_ps(levels), zero = _mm512_setzero_ps();
  __m512 even[2] = {zero, zero}, odd[2] = {zero, zero};
  for (int64_t b = 0; b < blocks; b++, codes += BLOCK / 2, x += BLOCK) {
    const __m512 own = rounded_avx512(type, _mm512_mul_ps(all, _mm512_set1_ps(scales[b])));
    add_32(even, x, codes, own);
    add_32(odd, x + 32, codes + 16, own);
  }
  float lanes[16], total = 0;
  _mm512_storeu_ps(lanes, _mm512_add_ps(_mm512_add_ps(even[0], even[1]), _mm512_add_ps(odd[0], odd[1])));
  for (int i = 0; i < 16; i++) total += lanes[i];
  return total;
}
#endif

static float levels_8[LEVELS_8];

bool accel_open_quantized_gemm(struct accel_quantized_gemm *gemm) {
  static const struct accel_quantized_form plain = {2, widen_plain, dot_plain};
  gemm->form = &plain;
#if RT_WIDE
  static const struct accel_quantized_form avx2 = {16, widen_avx2, dot_avx2}, avx512 = {32, widen_avx512, dot_avx512};
  if (__builtin_cpu_supports("x86-64-v3")) gemm->form = &avx2;
  if (__builtin_cpu_supports("x86-64-v4")) gemm->form = &avx512;
#endif
  rt_levels_8(levels_8);
  gemm->native = gemm->type == ACCEL_BF16 && rt_has_gemm_bfloat16();
  return gemm->type == ACCEL_F32 || gemm->native;
}

/* A matrix, and how to read it: by levels of 4 bits, or NULL. */
struct matrix {
  const struct accel_quantized_gemm *gemm;
  const float *levels;
  const uint8_t *codes;
  struct rt_scales scales;
};

/* Elements [first, first + count) of one row of int8. */
static void widen_int8(const struct matrix *m, float *to, int64_t first, int64_t count) {
  const int8_t *codes = (const int8_t *)m->codes + first;
  const float *scales = m->scales.absmax, scale = scales[first / m->gemm->in] * (float)(1.0 / 127);
  for (int64_t i = 0; i < count; i++) to[i] = (float)codes[i] * scale;
}

/* Elements [first, first + count), which are of one row. */
static void widen_run(const struct matrix *m, float *to, int64_t first, int64_t count) {
  if (m->levels == NULL) {
    widen_int8(m, to, first, count);
    return;
  }
  for (int64_t end = first + count; first < end;) {
    const int64_t block = first / BLOCK, last = (block + 1) * BLOCK < end ? (block + 1) * BLOCK : end;
    float scale;
    rt_block_scales(&m->scales, block, 1, &scale);
    if (last - first == BLOCK)
      m->gemm->form->widen(to, m->codes + first / 2, m->levels, scale);
    else
      for (int64_t i = first; i < last; i++) to[i - first] = m->levels[rt_code_4(m->codes, i)] * scale;
    to += last - first;
    first = last;
  }
}

/* Tiles of W: as many elements as the second-level cache of a core holds easily. Rows of x of 16 bits at a time. */
enum { ACROSS = 128, ALONG = 256, ROWS = 256 };

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* The part of W that a tile has: along the sum from k on, across from c on; a row of W each, of its depth, or of the
 * columns. `straight` its rows are ACROSS apart, else ALONG. */
static void widen_tile(const struct matrix *m, float *tile, int64_t k, int64_t length, int64_t c, int64_t columns) {
  const struct accel_quantized_gemm *gemm = m->gemm;
  const bool straight = gemm->straight;
  for (int64_t i = 0; i < (straight ? length : columns); i++)
    widen_run(m, tile + i * (straight ? ACROSS : ALONG), straight ? (k + i) * gemm->in + c : (c + i) * gemm->in + k,
              straight ? columns : length);
}

/* y[:][c, c + columns) of columns that one thread makes, tile by tile along the sum. */
static void multiply_columns(const struct matrix *m, float *y, const float *x, int64_t c, int64_t columns) {
  const struct accel_quantized_gemm *gemm = m->gemm;
  const bool straight = gemm->straight;
  const int64_t depth = straight ? gemm->out : gemm->in, width = straight ? gemm->in : gemm->out;
  _Alignas(64) float tile[ACROSS * ALONG];
  for (int64_t k = 0; k < depth; k += ALONG) {
    const int64_t length = least(ALONG, depth - k);
    widen_tile(m, tile, k, length, c, columns);
    rt_onednn_note(dnnl_sgemm('N', straight ? 'N' : 'T', gemm->rows, columns, length, 1.0f, x + k, depth, tile,
                              straight ? ACROSS : ALONG, k > 0 || gemm->accumulate ? 1.0f : 0.0f, y + c, width));
  }
}

/* The same of 16 bits for `rows` rows: the tile is rounded, and multiplied so where the processor can, else in floats.
 */
static void multiply_block(const struct matrix *m, uint16_t *y, const uint16_t *x, int64_t rows, int64_t c,
                           int64_t columns) {
  const struct accel_quantized_gemm *gemm = m->gemm;
  const bool straight = gemm->straight;
  const int64_t depth = straight ? gemm->out : gemm->in, width = straight ? gemm->in : gemm->out;
  const int64_t line = straight ? ACROSS : ALONG;
  const char turned = straight ? 'N' : 'T';
  _Alignas(64) float tile[ACROSS * ALONG], left[ROWS * ALONG], sum[ROWS * ACROSS];
  _Alignas(64) uint16_t low[ACROSS * ALONG];
  for (int64_t k = 0; k < depth; k += ALONG) {
    const int64_t length = least(ALONG, depth - k), lines = straight ? length : columns;
    const int64_t own = straight ? columns : length;
    const float before = k > 0 ? 1.0f : 0.0f;
    widen_tile(m, tile, k, length, c, columns);
    rt_store_lines(gemm->type, false, low, line, tile, line, lines, own);
    if (gemm->native) {
      rt_onednn_note(
          rt_gemm_bfloat16('N', turned, rows, columns, length, x + k, depth, low, line, before, sum, ACROSS));
      continue;
    }
    rt_widen_lines(gemm->type, tile, line, low, line, lines, own);
    rt_widen_lines(gemm->type, left, ALONG, x + k, depth, rows, length);
    rt_onednn_note(dnnl_sgemm('N', turned, rows, columns, length, 1.0f, left, ALONG, tile, line, before, sum, ACROSS));
  }
  rt_store_lines(gemm->type, gemm->accumulate, y + c, width, sum, ACROSS, rows, columns);
}

static void multiply_blocks(const struct matrix *m, uint16_t *y, const uint16_t *x) {
  const struct accel_quantized_gemm *gemm = m->gemm;
  const int64_t depth = gemm->straight ? gemm->out : gemm->in, width = gemm->straight ? gemm->in : gemm->out;
  const int64_t across = (width + ACROSS - 1) / ACROSS, blocks = (gemm->rows + ROWS - 1) / ROWS * across;
#pragma omp parallel for
  for (int64_t block = 0; block < blocks; block++) {
    const int64_t r = block / across * ROWS, c = block % across * ACROSS;
    multiply_block(m, y + r * width, x + r * depth, least(ROWS, gemm->rows - r), c, least(ACROSS, width - c));
  }
}

/* ---- One row ---- */

/* Elements of x that are put in the order of a form's groups: as many as a layer's inner width is. */
enum { MOST_ORDERED = 32768 };

static void put_in_order(const struct accel_quantized_gemm *gemm, float *to, const void *x) {
  const int64_t group = gemm->form->group, half = group / 2;
  for (int64_t i = 0; i < gemm->in; i++) {
    const int64_t at = i / group * group + i % group / 2 + (i % 2 == 0 ? 0 : half);
    const uint16_t *low = x;
    if (gemm->type == ACCEL_F32)
      to[at] = ((const float *)x)[i];
    else
      to[at] = gemm->type == ACCEL_BF16 ? rt_widen_bfloat16(low[i]) : rt_widen_float16(low[i]);
  }
}

/* One row of y = x W^T, of whole blocks: each element is read from its code into a register, and nowhere else. */
static void multiply_row(const struct matrix *m, void *y, const void *x) {
  enum { MOST = 256 };
  const struct accel_quantized_gemm *gemm = m->gemm;
  const int64_t blocks = gemm->in / BLOCK, size = gemm->type == ACCEL_F32 ? sizeof(float) : sizeof(uint16_t);
  _Alignas(64) float ordered[MOST_ORDERED];
  put_in_order(gemm, ordered, x);
#pragma omp parallel for
  for (int64_t o = 0; o < gemm->out; o++) {
    float sum = 0, scales[MOST];
    for (int64_t b = 0; b < blocks; b += MOST) {
      const int64_t count = least(MOST, blocks - b), first = o * blocks + b;
      rt_block_scales(&m->scales, first, count, scales);
      sum += gemm->form->dot(gemm->type, ordered + b * BLOCK, m->codes + first * (BLOCK / 2), m->levels, scales, count);
    }
    rt_store_lines(gemm->type, gemm->accumulate, (char *)y + o * size, 1, &sum, 1, 1, 1);
  }
}

void accel_multiply_quantized(const struct accel_quantized_gemm *gemm, void *y, const void *x, const void *codes,
                              const void *absmax, const float *nested_absmax, const float *nested_offset) {
  const struct matrix matrix = {gemm, rt_levels_4(gemm->as), codes, {absmax, nested_absmax, nested_offset, levels_8}};
  const int64_t columns = gemm->straight ? gemm->in : gemm->out;
  if (gemm->rows == 1 && !gemm->straight && matrix.levels != NULL && gemm->in % BLOCK == 0 &&
      gemm->in <= MOST_ORDERED) {
    multiply_row(&matrix, y, x);
    return;
  }
  if (gemm->type != ACCEL_F32) {
    multiply_blocks(&matrix, y, x);
    return;
  }
#pragma omp parallel for
  for (int64_t c = 0; c < columns; c += ACROSS) multiply_columns(&matrix, y, x, c, least(ACROSS, columns - c));
}
