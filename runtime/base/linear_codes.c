#include "runtime/base/linear_codes.h"

#include "runtime/base/half.h"
#include "runtime/base/wide.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#if RT_WIDE
#include <immintrin.h>
#endif

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* elements and codes are rounded as their definitions say */
#endif

enum { HALF_BYTES = 2, Q8_0_BYTES = 34, Q4_0_BYTES = 18, SUPER = 256, PARTS = SUPER / RT_STEPS, Q4_K_BYTES = 144 };
enum { Q4_K_SCALES = 2 * HALF_BYTES, Q4_K_CODES = Q4_K_SCALES + 12 }; /* where they begin */

bool rt_is_linear(enum accel_codes as) {
  return as == ACCEL_CODES_Q8_0 || as == ACCEL_CODES_Q4_0 || as == ACCEL_CODES_Q4_K || as == ACCEL_CODES_INT8_GROUPS ||
         as == ACCEL_CODES_INT4_GROUPS;
}

bool rt_linear_has_offsets(enum accel_codes as) {
  return as == ACCEL_CODES_Q4_K || as == ACCEL_CODES_INT4_GROUPS;
}

int64_t rt_linear_row_bytes(enum accel_codes as, int64_t in) {
  switch (as) {
  case ACCEL_CODES_Q8_0:
    return in / RT_STEPS * Q8_0_BYTES;
  case ACCEL_CODES_Q4_0:
    return in / RT_STEPS * Q4_0_BYTES;
  case ACCEL_CODES_Q4_K:
    return in / SUPER * Q4_K_BYTES;
  case ACCEL_CODES_INT8_GROUPS:
    return in;
  default:
    return in / 2;
  }
}

int64_t rt_linear_row_scales(enum accel_codes as, int64_t in, int64_t group) {
  if (as == ACCEL_CODES_INT8_GROUPS) return in / group;
  return as == ACCEL_CODES_INT4_GROUPS ? 2 * (in / group) : 0;
}

const uint8_t *rt_linear_codes_of(enum accel_codes as, const uint8_t *row, int64_t block) {
  switch (as) {
  case ACCEL_CODES_Q8_0:
    return row + block * Q8_0_BYTES + HALF_BYTES;
  case ACCEL_CODES_Q4_0:
    return row + block * Q4_0_BYTES + HALF_BYTES;
  case ACCEL_CODES_Q4_K:
    return row + block / PARTS * Q4_K_BYTES + Q4_K_CODES + block % PARTS / 2 * RT_STEPS;
  case ACCEL_CODES_INT8_GROUPS:
    return row + block * RT_STEPS;
  default:
    return row + block * (RT_STEPS / 2);
  }
}

static float half_at(const uint8_t *bytes) {
  uint16_t half;
  memcpy(&half, bytes, sizeof half);
  return rt_widen_float16(half);
}

static float put_half(float x, uint8_t *bytes) {
  const uint16_t half = rt_narrow_float16(x);
  memcpy(bytes, &half, sizeof half);
  return rt_widen_float16(half);
}

/* ---- Scales ---- */

/* The 8 a and 8 b of 256 elements: 6 bits of each of the first 4 in bytes 0 to 3 and 4 to 7; of the others 4 bits in
 * bytes 8 to 11, a lower, and 2 in the upper ones of the first 8 bytes. */
RT_INLINED void unpack(const uint8_t *packed, uint8_t a[PARTS], uint8_t b[PARTS]) {
  uint32_t words[3];
  memcpy(words, packed, sizeof words);
  const uint32_t low = 0x3f3f3f3f, half = 0x0f0f0f0f, high = 0x30303030;
  const uint64_t first = (words[0] & low) | (uint64_t)((words[2] & half) | (words[0] >> 2 & high)) << 32;
  const uint64_t second = (words[1] & low) | (uint64_t)((words[2] >> 4 & half) | (words[1] >> 2 & high)) << 32;
  memcpy(a, &first, sizeof first);
  memcpy(b, &second, sizeof second);
}

static void pack(const uint8_t a[PARTS], const uint8_t b[PARTS], uint8_t *packed) {
  for (int i = 0; i < PARTS / 2; i++) {
    packed[i] = (uint8_t)(a[i] | (a[i + 4] >> 4) << 6);
    packed[i + 4] = (uint8_t)(b[i] | (b[i + 4] >> 4) << 6);
    packed[i + 8] = (uint8_t)((a[i + 4] & 15) | (b[i + 4] & 15) << 4);
  }
}

RT_INLINED void rt_super_scales_body(const uint8_t *bytes, float d, float m, float *scales, float *offsets) {
  uint8_t a[PARTS], b[PARTS];
  unpack(bytes + Q4_K_SCALES, a, b);
#pragma omp simd
  for (int i = 0; i < PARTS; i++) scales[i] = d * (float)a[i];
#pragma omp simd
  for (int i = 0; i < PARTS; i++) offsets[i] = -(m * (float)b[i]);
}

RT_FOR_WIDTHS(rt_super_scales, (const uint8_t *bytes, float d, float m, float *scales, float *offsets),
              (bytes, d, m, scales, offsets))

/* Scales in float16, `stride` bytes from one to the next. */
static void halves_at(const uint8_t *bytes, int64_t stride, int64_t count, float *to) {
  for (int64_t i = 0; i < count; i++) to[i] = half_at(bytes + i * stride);
}

#if RT_WIDE
/* The same, 8 at a time, each inserted into a register: a gather takes several times as long. */
RT_FOR_AVX2 static void halves_at_avx2(const uint8_t *bytes, int64_t stride, int64_t count, float *to) {
  enum { TOGETHER = 8 };
  int64_t i = 0;
  for (; i + TOGETHER <= count; i += TOGETHER) {
    short halves[TOGETHER];
    for (int k = 0; k < TOGETHER; k++) memcpy(&halves[k], bytes + (i + k) * stride, sizeof halves[k]);
    const __m128i words =
        _mm_setr_epi16(halves[0], halves[1], halves[2], halves[3], halves[4], halves[5], halves[6], halves[7]);
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(words));
  }
  halves_at(bytes + i * stride, stride, count - i, to + i);
}
#endif

static void widen_halves(const uint8_t *bytes, int64_t stride, int64_t count, float *to) {
#if RT_WIDE
  if (__builtin_cpu_supports("x86-64-v3")) {
    halves_at_avx2(bytes, stride, count, to);
    return;
  }
#endif
  halves_at(bytes, stride, count, to);
}

static void scales_of_supers(const uint8_t *bytes, int64_t count, float *scales, float *offsets) {
  enum { TOGETHER = 16 };
  for (int64_t first = 0; first < count; first += TOGETHER) {
    const int64_t own = count - first < TOGETHER ? count - first : TOGETHER;
    const uint8_t *from = bytes + first * Q4_K_BYTES;
    float d[TOGETHER], m[TOGETHER];
    widen_halves(from, Q4_K_BYTES, own, d);
    widen_halves(from + HALF_BYTES, Q4_K_BYTES, own, m);
    for (int64_t i = 0; i < own; i++)
      rt_super_scales(from + i * Q4_K_BYTES, d[i], m[i], scales + (first + i) * PARTS, offsets + (first + i) * PARTS);
  }
}

void rt_linear_scales(const struct rt_linear *matrix, int64_t row, float *scales, float *offsets) {
  const int64_t blocks = matrix->in / RT_STEPS, in_group = matrix->group / RT_STEPS;
  const uint8_t *codes = matrix->codes + row * rt_linear_row_bytes(matrix->as, matrix->in);
  const float *own = matrix->scales + row * rt_linear_row_scales(matrix->as, matrix->in, matrix->group);
  switch (matrix->as) {
  case ACCEL_CODES_Q8_0:
    widen_halves(codes, Q8_0_BYTES, blocks, scales);
    return;
  case ACCEL_CODES_Q4_0:
    widen_halves(codes, Q4_0_BYTES, blocks, scales);
    return;
  case ACCEL_CODES_Q4_K:
    scales_of_supers(codes, blocks / PARTS, scales, offsets);
    return;
  case ACCEL_CODES_INT8_GROUPS:
    for (int64_t g = 0; g < blocks / in_group; g++)
      for (int64_t b = 0; b < in_group; b++) *scales++ = own[g];
    return;
  default:
    for (int64_t g = 0; g < blocks / in_group; g++)
      for (int64_t b = 0; b < in_group; b++) {
        *scales++ = own[2 * g];
        *offsets++ = own[2 * g + 1];
      }
  }
}

/* ---- Elements ---- */

/* 32 codes as numbers; `upper`: Q4_K's that are in upper halves. */
RT_INLINED void rt_linear_numbers_body(enum accel_codes as, const uint8_t *codes, int upper, float *to) {
  if (as == ACCEL_CODES_Q8_0 || as == ACCEL_CODES_INT8_GROUPS) {
    const int8_t *bytes = (const int8_t *)codes;
#pragma omp simd
    for (int i = 0; i < RT_STEPS; i++) to[i] = (float)bytes[i];
  } else if (as == ACCEL_CODES_Q4_K) {
    const int shift = upper * 4;
#pragma omp simd
    for (int i = 0; i < RT_STEPS; i++) to[i] = (float)(codes[i] >> shift & 15);
  } else {
#pragma omp simd
    for (int i = 0; i < RT_STEPS / 2; i++) {
      to[i] = (float)((codes[i] & 15) - 8);
      to[i + RT_STEPS / 2] = (float)((codes[i] >> 4) - 8);
    }
  }
}

RT_FOR_WIDTHS(rt_linear_numbers, (enum accel_codes as, const uint8_t *codes, int upper, float *to),
              (as, codes, upper, to))

static void scale_and_offset(const struct rt_linear *matrix, int64_t row, int64_t block, float *scale, float *offset) {
  const uint8_t *codes = matrix->codes + row * rt_linear_row_bytes(matrix->as, matrix->in);
  struct rt_linear one = *matrix;
  float scales[PARTS], offsets[PARTS];
  int64_t at = 0;
  one.in = one.group = RT_STEPS;
  if (matrix->as == ACCEL_CODES_Q4_K) {
    one.in = SUPER;
    at = block % PARTS;
    codes += block / PARTS * Q4_K_BYTES;
  } else if (matrix->scales == NULL) {
    codes = rt_linear_codes_of(matrix->as, codes, block) - HALF_BYTES;
  } else {
    const int64_t before = row * (matrix->in / matrix->group) + block * RT_STEPS / matrix->group;
    one.scales += before * rt_linear_row_scales(matrix->as, 1, 1);
  }
  one.codes = codes;
  offsets[at] = 0;
  rt_linear_scales(&one, 0, scales, offsets);
  *scale = scales[at];
  *offset = offsets[at];
}

void rt_linear_widen(const struct rt_linear *matrix, int64_t row, int64_t first, int64_t count, float *to) {
  const uint8_t *codes = matrix->codes + row * rt_linear_row_bytes(matrix->as, matrix->in);
  for (int64_t end = first + count; first < end;) {
    const int64_t block = first / RT_STEPS, from = first % RT_STEPS;
    const int64_t own = RT_STEPS - from < end - first ? RT_STEPS - from : end - first;
    float numbers[RT_STEPS], scale, offset;
    rt_linear_numbers(matrix->as, rt_linear_codes_of(matrix->as, codes, block), (int)(block % 2), numbers);
    scale_and_offset(matrix, row, block, &scale, &offset);
    for (int64_t i = 0; i < own; i++) {
      const float scaled = scale * numbers[from + i];
      to[i] = scaled + offset;
    }
    to += own;
    first += own;
  }
}

/* ---- Codes of floats ---- */

static float largest_of(const float *x, int64_t count) {
  float most = 0;
  for (int64_t i = 0; i < count; i++) most = fmaxf(most, fabsf(x[i]));
  return most;
}

/* A scale without a reciprocal in float32 is 0 in float16, so that its numbers are 0. */
bool rt_q8_0_encode(const float *x, uint8_t *bytes) {
  const float scale = largest_of(x, RT_STEPS) / 127, inverse = isfinite(1 / scale) ? 1 / scale : 0;
  for (int i = 0; i < RT_STEPS; i++) bytes[HALF_BYTES + i] = (uint8_t)(int8_t)roundf(x[i] * inverse);
  return isfinite(put_half(scale, bytes));
}

/* The number of the largest magnitude becomes the code 0, which is -8 steps. */
static void encode_q4_0(const float *x, uint8_t *bytes) {
  float most = 0, other;
  uint8_t codes[RT_STEPS];
  for (int i = 0; i < RT_STEPS; i++)
    if (fabsf(x[i]) > fabsf(most)) most = x[i];
  const float scale = most / -8, inverse = isfinite(1 / scale) ? 1 / scale : 0;
  for (int i = 0; i < RT_STEPS; i++) {
    other = x[i] * inverse;
    codes[i] = (uint8_t)fminf(other + 8.5f, 15);
  }
  put_half(scale, bytes);
  for (int i = 0; i < RT_STEPS / 2; i++) bytes[HALF_BYTES + i] = (uint8_t)(codes[i] | codes[i + RT_STEPS / 2] << 4);
}

/* A number from 0 to `most`, the nearest; ties are to even. */
static uint8_t nearest(float x, float most) {
  return (uint8_t)fminf(fmaxf(rintf(x), 0), most);
}

static float inverse_of(float x) {
  return x > 0 && isfinite(1 / x) ? 1 / x : 0;
}

static void encode_q4_k(const float *x, uint8_t *bytes) {
  float steps[PARTS] = {0}, below[PARTS] = {0};
  uint8_t a[PARTS], b[PARTS];
  for (int p = 0; p < PARTS; p++) {
    float least = 0, most = 0;
    for (int i = 0; i < RT_STEPS; i++) {
      least = fminf(least, x[p * RT_STEPS + i]);
      most = fmaxf(most, x[p * RT_STEPS + i]);
    }
    steps[p] = (most - least) / 15;
    below[p] = -least;
  }
  const float d = put_half(largest_of(steps, PARTS) / 63, bytes);
  const float m = put_half(largest_of(below, PARTS) / 63, bytes + HALF_BYTES);
  for (int p = 0; p < PARTS; p++) {
    a[p] = nearest(steps[p] * inverse_of(d), 63);
    b[p] = nearest(below[p] * inverse_of(m), 63);
  }
  pack(a, b, bytes + Q4_K_SCALES);
  memset(bytes + Q4_K_CODES, 0, SUPER / 2);
  for (int i = 0; i < SUPER; i++) {
    const int p = i / RT_STEPS;
    const uint8_t code = nearest((x[i] + m * (float)b[p]) * inverse_of(d * (float)a[p]), 15);
    bytes[Q4_K_CODES + p / 2 * RT_STEPS + i % RT_STEPS] |= (uint8_t)(code << p % 2 * 4);
  }
}

static void encode_int8(const float *x, int64_t group, uint8_t *codes, float *scale) {
  *scale = fmaxf(largest_of(x, group) / 127.5f, 0x1p-23f);
  const float inverse = 1 / *scale;
  for (int64_t i = 0; i < group; i++) codes[i] = (uint8_t)(int8_t)fminf(fmaxf(rintf(x[i] * inverse), -128), 127);
}

static void encode_int4(const float *x, int64_t group, uint8_t *codes, float *scales) {
  float least = x[0], most = x[0];
  for (int64_t i = 1; i < group; i++) {
    least = fminf(least, x[i]);
    most = fmaxf(most, x[i]);
  }
  scales[0] = fmaxf((most - least) / 15, 1e-6f);
  const float middle = scales[0] * 8, zero = least + middle, from = zero - middle;
  scales[1] = zero;
  memset(codes, 0, (size_t)group / 2);
  for (int64_t i = 0; i < group; i++) {
    const int64_t at = i / RT_STEPS * (RT_STEPS / 2) + i % (RT_STEPS / 2);
    codes[at] |= (uint8_t)(nearest((x[i] - from) / scales[0], 15) << i % RT_STEPS / (RT_STEPS / 2) * 4);
  }
}

void rt_linear_quantize(enum accel_codes as, int64_t in, int64_t group, const float *x, uint8_t *codes, float *scales) {
  const int64_t step = as == ACCEL_CODES_Q4_K ? SUPER : rt_linear_row_scales(as, in, 1) > 0 ? group : RT_STEPS;
  for (int64_t i = 0; i < in; i += step) {
    uint8_t *own = codes + rt_linear_row_bytes(as, i);
    if (as == ACCEL_CODES_Q8_0) rt_q8_0_encode(x + i, own);
    if (as == ACCEL_CODES_Q4_0) encode_q4_0(x + i, own);
    if (as == ACCEL_CODES_Q4_K) encode_q4_k(x + i, own);
    if (as == ACCEL_CODES_INT8_GROUPS) encode_int8(x + i, step, own, scales + i / step);
    if (as == ACCEL_CODES_INT4_GROUPS) encode_int4(x + i, step, own, scales + 2 * (i / step));
  }
}
