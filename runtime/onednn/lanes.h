/* What rows of W that are multiplied at a time share: loops over rows whose sums are registers, sums of their lanes,
 * and levels of codes. Where RT_WIDE. */
#ifndef RUNTIME_ONEDNN_LANES_H
#define RUNTIME_ONEDNN_LANES_H

#include "runtime/base/wide.h"

#if RT_WIDE
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* for (int r = 0; r < 4; r++), unrolled: gcc at -O2 does that where it is told to. */
#ifdef __clang__
#define RT_EACH_OF_4_ROWS for (int r = 0; r < 4; r++)
#else
#define RT_EACH_OF_4_ROWS _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++)
#endif

/* Where to read ahead from while four rows of `row_bytes` are read at once, which begin at `rows`. So many short
 * streams next to each other are none to a processor, which waits for each line. Long rows it reads ahead by itself:
 * NULL. */
static inline const uint8_t *rt_ahead_of(const uint8_t *rows, int64_t row_bytes) {
  enum { LONG = 4096, FURTHER = 1024 };
  return row_bytes > LONG ? NULL : rows + 3 * row_bytes + FURTHER;
}

/* Fetches `bytes` from there on, in the order of memory: rows are read no earlier than these. */
RT_INLINED void rt_read_ahead(const uint8_t *at, int64_t bytes) {
  enum { LINE = 64 };
  for (int64_t i = 0; i <= bytes; i += LINE) _mm_prefetch((const char *)at + i, _MM_HINT_NTA);
}

/* The upper half of a register added to the lower one. */
RT_FOR_AVX512 RT_INLINED __m256 rt_half_lanes(__m512 x) {
  return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
}

RT_FOR_AVX2 RT_INLINED __m128 rt_quarter_lanes(__m256 x) {
  return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
}

/* The sum of each of four registers of four lanes: lanes 0 and 2 are added first, as are 1 and 3. */
RT_FOR_AVX2 RT_INLINED __m128 rt_sum_lanes(const __m128 lanes[4]) {
  __m128 a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
  _MM_TRANSPOSE4_PS(a, b, c, d);
  return _mm_add_ps(_mm_add_ps(a, c), _mm_add_ps(b, d));
}

/* Levels of 8 codes, which are the lower halves of bytes: of the lower 8 levels or of the upper ones, by bit 3. */
RT_FOR_AVX2 RT_INLINED __m256 rt_levels_of_8(__m256i codes, const __m256 levels[2]) {
  const __m256 bit = _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(levels[0], codes), _mm256_permutevar8x32_ps(levels[1], codes), bit);
}
#endif

#endif
