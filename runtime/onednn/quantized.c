#include "include/accel/quantized_gemm.h"

#include "runtime/base/half.h"
#include "runtime/base/levels.h"
#include "runtime/onednn/gemm.h"
#include "runtime/onednn/lanes.h"
#include "runtime/onednn/linear_row.h"
#include "runtime/onednn/lines.h"
#include "runtime/onednn/onednn.h"
#include "runtime/onednn/quantized_row.h"

#include <stddef.h>

enum { BLOCK = ACCEL_QUANTIZED_BLOCK };

/* The elements of a whole block, as a processor reads them. */
typedef void widen_function(float *to, const uint8_t *codes, const float *levels, float scale);

static void widen_plain(float *to, const uint8_t *codes, const float *levels, float scale) {
  for (int i = 0; i < BLOCK; i++) to[i] = levels[rt_code_4(codes, i)] * scale;
}

#if RT_WIDE
/* 16 codes of 8 bytes, one in each byte, in their order. */
RT_INLINED __m128i spread(const uint8_t *codes) {
  const __m128i bytes = _mm_loadl_epi64((const __m128i *)codes), low = _mm_set1_epi8(15);
  return _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(bytes, 4), low), _mm_and_si128(bytes, low));
}

RT_FOR_AVX2 static void widen_avx2(float *to, const uint8_t *codes, const float *levels, float scale) {
  const __m256 all[2] = {_mm256_loadu_ps(levels), _mm256_loadu_ps(levels + 8)}, factor = _mm256_set1_ps(scale);
  for (int i = 0; i < BLOCK; i += 16) {
    const __m128i own = spread(codes + i / 2);
    const __m256i first = _mm256_cvtepu8_epi32(own), second = _mm256_cvtepu8_epi32(_mm_srli_si128(own, 8));
    _mm256_storeu_ps(to + i, _mm256_mul_ps(rt_levels_of_8(first, all), factor));
    _mm256_storeu_ps(to + i + 8, _mm256_mul_ps(rt_levels_of_8(second, all), factor));
  }
}

RT_FOR_AVX512 static void widen_avx512(float *to, const uint8_t *codes, const float *levels, float scale) {
  const __m512 all = _mm512_loadu_ps(levels), factor = _mm512_set1_ps(scale);
  for (int i = 0; i < BLOCK; i += 16) {
    const __m512i own = _mm512_cvtepu8_epi32(spread(codes + i / 2));
    _mm512_storeu_ps(to + i, _mm512_mul_ps(_mm512_permutexvar_ps(own, all), factor));
  }
}
#endif

static float levels_8[LEVELS_8];

static widen_function *best_widen(void) {
#if RT_WIDE
  if (__builtin_cpu_supports("x86-64-v4")) return widen_avx512;
  if (__builtin_cpu_supports("x86-64-v3")) return widen_avx2;
#endif
  return widen_plain;
}

bool accel_open_quantized_gemm(struct accel_quantized_gemm *gemm) {
  gemm->form = rt_row_form();
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
  widen_function *widen;
};

/* Elements [first, first + count) of one row of int8. */
static void widen_int8(const struct matrix *m, float *to, int64_t first, int64_t count) {
  const int8_t *codes = (const int8_t *)m->codes + first;
  const float *scales = m->scales.absmax, scale = scales[first / m->gemm->in] * (float)(1.0 / 127);
  for (int64_t i = 0; i < count; i++) to[i] = (float)codes[i] * scale;
}

static struct rt_linear linear_of(const struct matrix *m) {
  const struct accel_quantized_gemm *gemm = m->gemm;
  return (struct rt_linear){gemm->as, gemm->in, gemm->group, m->codes, m->scales.absmax};
}

/* Elements [first, first + count), which are of one row. */
static void widen_run(const struct matrix *m, float *to, int64_t first, int64_t count) {
  if (rt_is_linear(m->gemm->as)) {
    const struct rt_linear linear = linear_of(m);
    rt_linear_widen(&linear, first / linear.in, first % linear.in, count, to);
    return;
  }
  if (m->levels == NULL) {
    widen_int8(m, to, first, count);
    return;
  }
  for (int64_t end = first + count; first < end;) {
    const int64_t block = first / BLOCK, last = (block + 1) * BLOCK < end ? (block + 1) * BLOCK : end;
    float scale;
    rt_block_scales(&m->scales, block, 1, &scale);
    if (last - first == BLOCK)
      m->widen(to, m->codes + first / 2, m->levels, scale);
    else
      for (int64_t i = first; i < last; i++) to[i - first] = m->levels[rt_code_4(m->codes, i)] * scale;
    to += last - first;
    first = last;
  }
}

/* Tiles of W: as many elements as the second-level cache of a core holds easily. Rows of x of 16 bits at a time. */
enum { ACROSS = 128, ALONG = 256, ROWS = 256 };

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
    const int64_t length = rt_least(ALONG, depth - k);
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
    const int64_t length = rt_least(ALONG, depth - k), lines = straight ? length : columns;
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
    multiply_block(m, y + r * width, x + r * depth, rt_least(ROWS, gemm->rows - r), c, rt_least(ACROSS, width - c));
  }
}

void accel_multiply_quantized(const struct accel_quantized_gemm *gemm, void *y, const void *x, const void *codes,
                              const void *absmax, const float *nested_absmax, const float *nested_offset) {
  const struct matrix matrix = {
      gemm, rt_levels_4(gemm->as), codes, {absmax, nested_absmax, nested_offset, levels_8}, best_widen()};
  const int64_t columns = gemm->straight ? gemm->in : gemm->out;
  if (gemm->rows == 1 && !gemm->straight && matrix.levels != NULL && gemm->in % BLOCK == 0 &&
      gemm->in <= RT_MOST_IN_ROW) {
    rt_multiply_quantized_row(gemm, matrix.levels, y, x, codes, &matrix.scales);
    return;
  }
  if (gemm->rows == 1 && !gemm->straight && gemm->type == ACCEL_F32 && rt_is_linear(gemm->as) &&
      gemm->in <= RT_MOST_LINEAR) {
    const struct rt_linear linear = linear_of(&matrix);
    rt_multiply_linear_row(gemm, &linear, y, x);
    return;
  }
  if (gemm->type != ACCEL_F32) {
    multiply_blocks(&matrix, y, x);
    return;
  }
#pragma omp parallel for
  for (int64_t c = 0; c < columns; c += ACROSS) multiply_columns(&matrix, y, x, c, rt_least(ACROSS, columns - c));
}
