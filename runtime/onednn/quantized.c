#include "include/accel/quantized_gemm.h"

#include "runtime/base/levels.h"
#include "runtime/base/wide.h"
#include "runtime/onednn/onednn.h"

#include <stddef.h>

#if RT_WIDE
#include <immintrin.h>
#endif

enum { BLOCK = ACCEL_QUANTIZED_BLOCK, NESTED = ACCEL_QUANTIZED_NESTED };

/* What differs between processors: the elements of a whole block; the sum of a row's products with x, of whole blocks.
 */
struct accel_quantized_form {
  void (*widen)(float *to, const uint8_t *codes, const float *levels, float scale);
  float (*dot)(const float *x, const uint8_t *codes, const float *levels, const float *scales, int64_t blocks);
};

static int code_at(const uint8_t *codes, int64_t i) {
  return i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
}

static void widen_plain(float *to, const uint8_t *codes, const float *levels, float scale) {
  for (int i = 0; i < BLOCK; i++) to[i] = levels[code_at(codes, i)] * scale;
}

static float dot_plain(const float *x, const uint8_t *codes, const float *levels, const float *scales, int64_t blocks) {
  float sum = 0;
  for (int64_t b = 0; b < blocks; b++) {
    float own = 0;
    for (int i = 0; i < BLOCK; i++) own += x[b * BLOCK + i] * levels[code_at(codes + b * (BLOCK / 2), i)];
    sum += own * scales[b];
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

/* Levels of 8 codes: of the lower 8 levels or of the upper ones, by bit 3 of a code. */
FOR_AVX2 static inline __m256 levels_of_8(__m128i codes, __m256 lower, __m256 upper) {
  const __m256i which = _mm256_cvtepu8_epi32(codes);
  const __m256 bit = _mm256_castsi256_ps(_mm256_slli_epi32(which, 28));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(lower, which), _mm256_permutevar8x32_ps(upper, which), bit);
}

FOR_AVX2 static void widen_avx2(float *to, const uint8_t *codes, const float *levels, float scale) {
  const __m256 lower = _mm256_loadu_ps(levels), upper = _mm256_loadu_ps(levels + 8), factor = _mm256_set1_ps(scale);
  for (int i = 0; i < BLOCK; i += 16) {
    const __m128i own = spread(codes + i / 2);
    _mm256_storeu_ps(to + i, _mm256_mul_ps(levels_of_8(own, lower, upper), factor));
    _mm256_storeu_ps(to + i + 8, _mm256_mul_ps(levels_of_8(_mm_srli_si128(own, 8), lower, upper), factor));
  }
}

FOR_AVX2 static float dot_avx2(const float *x, const uint8_t *codes, const float *levels, const float *scales,
                               int64_t blocks) {
  const __m256 lower = _mm256_loadu_ps(levels), upper = _mm256_loadu_ps(levels + 8);
  __m256 sum = _mm256_setzero_ps();
  for (int64_t b = 0; b < blocks; b++) {
    __m256 even = _mm256_setzero_ps(), odd = _mm256_setzero_ps();
    for (int i = 0; i < BLOCK; i += 16, codes += 8, x += 16) {
      const __m128i own = spread(codes);
      even = _mm256_fmadd_ps(levels_of_8(own, lower, upper), _mm256_loadu_ps(x), even);
      odd = _mm256_fmadd_ps(levels_of_8(_mm_srli_si128(own, 8), lower, upper), _mm256_loadu_ps(x + 8), odd);
    }
    sum = _mm256_fmadd_ps(_mm256_add_ps(even, odd), _mm256_set1_ps(scales[b]), sum);
  }
  float lanes[8], total = 0;
  _mm256_storeu_ps(lanes, sum);
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

FOR_AVX512 static float dot_avx512(const float *x, const uint8_t *codes, const float *levels, const float *scales,
                                   int64_t blocks) {
  const __m512 all = _mm512_loadu_ps(levels);
  __m512 sum = _mm512_setzero_ps();
  for (int64_t b = 0; b < blocks; b++) {
    __m512 own[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (int i = 0; i < BLOCK / 16; i++, codes += 8, x += 16)
      own[i % 2] = _mm512_fmadd_ps(_mm512_permutexvar_ps(_mm512_cvtepu8_epi32(spread(codes)), all), _mm512_loadu_ps(x),
                                   own[i % 2]);
    sum = _mm512_fmadd_ps(_mm512_add_ps(own[0], own[1]), _mm512_set1_ps(scales[b]), sum);
  }
  float lanes[16], total = 0;
  _mm512_storeu_ps(lanes, sum);
  for (int i = 0; i < 16; i++) total += lanes[i];
  return total;
}
#endif

static float levels_8[LEVELS_8];

bool accel_open_quantized_gemm(struct accel_quantized_gemm *gemm) {
  static const struct accel_quantized_form plain = {widen_plain, dot_plain};
  gemm->form = &plain;
#if RT_WIDE
  static const struct accel_quantized_form avx2 = {widen_avx2, dot_avx2}, avx512 = {widen_avx512, dot_avx512};
  if (__builtin_cpu_supports("x86-64-v3")) gemm->form = &avx2;
  if (__builtin_cpu_supports("x86-64-v4")) gemm->form = &avx512;
#endif
  rt_levels_8(levels_8);
  return true;
}

/* A matrix, and how to read it. */
struct matrix {
  const struct accel_quantized_gemm *gemm;
  const float *levels;
  const uint8_t *codes;
  const void *absmax;
  const float *nested_absmax, *nested_offset;
};

static float scale_of(const struct matrix *m, int64_t block) {
  if (m->nested_absmax == NULL) return ((const float *)m->absmax)[block];
  const float scale = levels_8[((const uint8_t *)m->absmax)[block]] * m->nested_absmax[block / NESTED];
  return scale + m->nested_offset[0];
}

/* Elements [first, first + count). */
static void widen_run(const struct matrix *m, float *to, int64_t first, int64_t count) {
  for (int64_t end = first + count; first < end;) {
    const int64_t block = first / BLOCK, last = (block + 1) * BLOCK < end ? (block + 1) * BLOCK : end;
    const float scale = scale_of(m, block);
    if (last - first == BLOCK)
      m->gemm->form->widen(to, m->codes + first / 2, m->levels, scale);
    else
      for (int64_t i = first; i < last; i++) to[i - first] = m->levels[code_at(m->codes, i)] * scale;
    to += last - first;
    first = last;
  }
}

/* Tiles of W: as many elements as the second-level cache of a core holds easily. */
enum { ACROSS = 128, ALONG = 256 };

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* y[:][c, c + columns) of columns that one thread makes, tile by tile along the sum. */
static void multiply_columns(const struct matrix *m, float *y, const float *x, int64_t c, int64_t columns) {
  const struct accel_quantized_gemm *gemm = m->gemm;
  const bool straight = gemm->straight;
  const int64_t depth = straight ? gemm->out : gemm->in, width = straight ? gemm->in : gemm->out;
  _Alignas(64) float tile[ACROSS * ALONG];
  for (int64_t k = 0; k < depth; k += ALONG) {
    const int64_t length = least(ALONG, depth - k), lines = straight ? length : columns;
    for (int64_t i = 0; i < lines; i++) /* a row of W each: of its depth, or of the columns */
      widen_run(m, tile + i * (straight ? ACROSS : ALONG), straight ? (k + i) * gemm->in + c : (c + i) * gemm->in + k,
                straight ? columns : length);
    rt_onednn_note(dnnl_sgemm('N', straight ? 'N' : 'T', gemm->rows, columns, length, 1.0f, x + k, depth, tile,
                              straight ? ACROSS : ALONG, k > 0 || gemm->accumulate ? 1.0f : 0.0f, y + c, width));
  }
}

/* One row of y = x W^T, of whole blocks: each element is read from its code into a register, and nowhere else. */
static void multiply_row(const struct matrix *m, float *y, const float *x) {
  enum { MOST = 256 };
  const struct accel_quantized_gemm *gemm = m->gemm;
  const int64_t blocks = gemm->in / BLOCK;
#pragma omp parallel for
  for (int64_t o = 0; o < gemm->out; o++) {
    float sum = gemm->accumulate ? y[o] : 0, scales[MOST];
    for (int64_t b = 0; b < blocks; b += MOST) {
      const int64_t count = least(MOST, blocks - b), first = o * blocks + b;
      for (int64_t i = 0; i < count; i++) scales[i] = scale_of(m, first + i);
      sum += gemm->form->dot(x + b * BLOCK, m->codes + first * (BLOCK / 2), m->levels, scales, count);
    }
    y[o] = sum;
  }
}

void accel_multiply_quantized(const struct accel_quantized_gemm *gemm, float *y, const float *x, const uint8_t *codes,
                              const void *absmax, const float *nested_absmax, const float *nested_offset) {
  const struct matrix matrix = {gemm, rt_levels_4(gemm->fp4), codes, absmax, nested_absmax, nested_offset};
  const int64_t columns = gemm->straight ? gemm->in : gemm->out;
  if (gemm->rows == 1 && !gemm->straight && gemm->in % BLOCK == 0) {
    multiply_row(&matrix, y, x);
    return;
  }
#pragma omp parallel for
  for (int64_t c = 0; c < columns; c += ACROSS) multiply_columns(&matrix, y, x, c, least(ACROSS, columns - c));
}
