#include "runtime/base/levels.h"

#include "include/accel/quantized_gemm.h"
#include "runtime/base/wide.h"

#include <math.h>
#include <string.h>

#if RT_WIDE
#include <immintrin.h>
#endif

const float *rt_levels_4(enum accel_codes as) {
  static const float nf4[LEVELS_4] = {-1.0f,
                                      -0.6961928009986877f,
                                      -0.5250730514526367f,
                                      -0.39491748809814453f,
                                      -0.28444138169288635f,
                                      -0.18477343022823334f,
                                      -0.09105003625154495f,
                                      0.0f,
                                      0.07958029955625534f,
                                      0.16093020141124725f,
                                      0.24611230194568634f,
                                      0.33791524171829224f,
                                      0.44070982933044434f,
                                      0.5626170039176941f,
                                      0.7229568362236023f,
                                      1.0f};
  static const float fp4_levels[LEVELS_4] = {0.0f,       0.0625f / 12, 8.0f / 12,  1.0f,          4.0f / 12,  6.0f / 12,
                                             2.0f / 12,  3.0f / 12,    0.0f,       -0.0625f / 12, -8.0f / 12, -1.0f,
                                             -4.0f / 12, -6.0f / 12,   -2.0f / 12, -3.0f / 12};
  return as == ACCEL_CODES_NF4 ? nf4 : as == ACCEL_CODES_FP4 ? fp4_levels : NULL;
}

/* Point `i` of `count` from 0.1 to 1 at equal distances, from the nearer end, as torch.linspace rounds it. */
static float point(int i, int count) {
  const float step = (1.0f - 0.1f) / (float)(count - 1);
  return i < count / 2 ? fmaf(step, (float)i, 0.1f) : fmaf(-step, (float)(count - 1 - i), 1.0f);
}

/* Within each power of ten twice as many levels as in the one before, in the middle between points. */
void rt_levels_8(float levels[LEVELS_8]) {
  enum { ZERO = 127, POWERS = 7 };
  levels[ZERO] = 0;
  levels[LEVELS_8 - 1] = 1;
  for (int power = 0, at = ZERO + 1; power < POWERS; power++) {
    const int count = 1 << power;
    const float scale = (float)pow(10, power - (POWERS - 1));
    for (int i = 0; i < count; i++, at++) {
      const float middle = (point(i, count + 1) + point(i + 1, count + 1)) / 2;
      levels[at] = scale * middle;
      levels[2 * ZERO - at] = -levels[at];
    }
  }
}

static void widen_scales(float *to, const uint8_t *codes, const float *levels, float outer, float offset,
                         int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const float scale = levels[codes[i]] * outer;
    to[i] = scale + offset;
  }
}

#if RT_WIDE
/* The same, 16 at a time. A compiler would read levels one by one. */
RT_FOR_AVX512 static void widen_scales_avx512(float *to, const uint8_t *codes, const float *levels, float outer,
                                              float offset, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 own = count - i < 16 ? (__mmask16)((1u << (count - i)) - 1) : (__mmask16)0xffff;
    const __m512i which = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(own, codes + i));
    const __m512 scale = _mm512_mul_ps(_mm512_i32gather_ps(which, levels, sizeof *levels), _mm512_set1_ps(outer));
    _mm512_mask_storeu_ps(to + i, own, _mm512_add_ps(scale, _mm512_set1_ps(offset)));
  }
}
#endif

/* By the widest registers that the processor has. */
static void widen(float *to, const uint8_t *codes, const float *levels, float outer, float offset, int64_t count) {
#if RT_WIDE
  if (__builtin_cpu_supports("x86-64-v4")) {
    widen_scales_avx512(to, codes, levels, outer, offset, count);
    return;
  }
#endif
  widen_scales(to, codes, levels, outer, offset, count);
}

/* Of as many as share an outer scale at a time. */
void rt_block_scales(const struct rt_scales *scales, int64_t first, int64_t count, float *to) {
  enum { NESTED = ACCEL_QUANTIZED_NESTED };
  if (scales->nested_absmax == NULL) {
    memcpy(to, (const float *)scales->absmax + first, (size_t)count * sizeof *to);
    return;
  }
  for (int64_t end = first + count; first < end;) {
    const int64_t last = (first / NESTED + 1) * NESTED < end ? (first / NESTED + 1) * NESTED : end;
    widen(to, (const uint8_t *)scales->absmax + first, scales->levels, scales->nested_absmax[first / NESTED],
          scales->nested_offset[0], last - first);
    to += last - first;
    first = last;
  }
}
