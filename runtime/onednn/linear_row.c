#include "runtime/onednn/linear_row.h"

#include "runtime/onednn/lanes.h"
#include "runtime/onednn/lines.h"

#include <stddef.h>
#include <string.h>

enum { ROWS = 4, LANES = 16, MOST = RT_MOST_LINEAR / RT_STEPS };
enum { PARTS = 8 }; /* of 32 elements, in a block of Q4_K, after which its codes begin once more */

/* Rows of W: where the codes of each begin, and its scales and offsets, of which there are zeros up to a multiple of
 * LANES; the scales of GGUF's blocks of 32 are none where they are read with the codes. A row that is not wanted is
 * another once more. */
struct rows {
  enum accel_codes as;
  int64_t blocks;
  bool has_offsets;
  const uint8_t *codes[ROWS];
  const float *scales[ROWS], *offsets[ROWS];
  const uint8_t *ahead; /* of codes that are read next; NULL: none */
};

/* Writes the sums of products of x with four rows; x_sums: of each 32 elements, and zeros after them as in `rows`. */
typedef void dots_function(const float *x, const float *x_sums, const struct rows *rows, float *sums);

/* Whether a scale in float16 stands before each 32 codes. */
static inline bool has_scale_before(enum accel_codes as) {
  return as == ACCEL_CODES_Q8_0 || as == ACCEL_CODES_Q4_0;
}

/* ---- Any processor ---- */

RT_INLINED void rt_linear_dot_body(enum accel_codes as, const float *x, const uint8_t *codes, int upper, float scale,
                                   float *lanes) {
  const int8_t *bytes = (const int8_t *)codes;
  const int shift = upper * 4;
  if (as == ACCEL_CODES_Q8_0 || as == ACCEL_CODES_INT8_GROUPS)
#pragma omp simd
    for (int i = 0; i < LANES; i++)
      lanes[i] += (x[i] * (float)bytes[i] + x[i + LANES] * (float)bytes[i + LANES]) * scale;
  else if (as == ACCEL_CODES_Q4_K)
#pragma omp simd
    for (int i = 0; i < LANES; i++)
      lanes[i] +=
          (x[i] * (float)(codes[i] >> shift & 15) + x[i + LANES] * (float)(codes[i + LANES] >> shift & 15)) * scale;
  else
#pragma omp simd
    for (int i = 0; i < LANES; i++)
      lanes[i] += (x[i] * (float)((codes[i] & 15) - 8) + x[i + LANES] * (float)((codes[i] >> 4) - 8)) * scale;
}

RT_FOR_WIDTHS(rt_linear_dot,
              (enum accel_codes as, const float *x, const uint8_t *codes, int upper, float scale, float *lanes),
              (as, x, codes, upper, scale, lanes))

static void dots_plain(const float *x, const float *x_sums, const struct rows *rows, float *sums) {
  for (int r = 0; r < ROWS; r++) {
    float lanes[LANES] = {0};
    for (int64_t b = 0; b < rows->blocks; b++)
      rt_linear_dot(rows->as, x + b * RT_STEPS, rt_linear_codes_of(rows->as, rows->codes[r], b), (int)(b % 2),
                    rows->scales[r][b], lanes);
    for (int64_t b = 0; rows->has_offsets && b < rows->blocks; b++) lanes[b % LANES] += x_sums[b] * rows->offsets[r][b];
    for (int width = LANES / 2; width > 0; width /= 2)
      for (int i = 0; i < width; i++) lanes[i] += lanes[i + width];
    sums[r] = lanes[0];
  }
}

/* ---- AVX-512 ---- */

#if RT_WIDE
/* Bytes of 32 codes, with their scale where it stands before them. */
static inline int64_t bytes_of(enum accel_codes as) {
  const bool whole = as == ACCEL_CODES_Q8_0 || as == ACCEL_CODES_INT8_GROUPS;
  return (whole ? RT_STEPS : RT_STEPS / 2) + (has_scale_before(as) ? (int64_t)sizeof(uint16_t) : 0);
}

/* The numbers of 32 codes. Those of 4 bits are looked up in a register, by the lower 4 bits of an index. */
RT_FOR_AVX512 RT_INLINED void numbers_avx512(enum accel_codes as, const uint8_t *codes, int upper, __m512 levels,
                                             __m512 numbers[2]) {
  const __m128i *bytes = (const __m128i *)codes;
  if (as == ACCEL_CODES_Q8_0 || as == ACCEL_CODES_INT8_GROUPS) {
    numbers[0] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes)));
    numbers[1] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes + 1)));
    return;
  }
  const __m512i first = _mm512_cvtepu8_epi32(_mm_loadu_si128(bytes));
  if (as == ACCEL_CODES_Q4_0 || as == ACCEL_CODES_INT4_GROUPS) {
    numbers[0] = _mm512_permutexvar_ps(first, levels);
    numbers[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(first, 4), levels);
    return;
  }
  const __m512i second = _mm512_cvtepu8_epi32(_mm_loadu_si128(bytes + 1));
  const __m128i shift = _mm_cvtsi32_si128(upper * 4);
  numbers[0] = _mm512_permutexvar_ps(_mm512_srl_epi32(first, shift), levels);
  numbers[1] = _mm512_permutexvar_ps(_mm512_srl_epi32(second, shift), levels);
}

/* The scale of 32 codes in every lane: in float16 before them, or the one at `own`. */
RT_FOR_AVX512 RT_INLINED __m512 scale_avx512(enum accel_codes as, const uint8_t *codes, const float *own) {
  if (!has_scale_before(as)) return _mm512_set1_ps(*own);
  uint16_t half;
  memcpy(&half, codes - sizeof half, sizeof half);
  return _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

/* The first byte of the codes of block b, of the row that begins at `row`. */
RT_FOR_AVX512 RT_INLINED const uint8_t *codes_avx512(enum accel_codes as, const uint8_t *row, int64_t b) {
  enum { HALF = sizeof(uint16_t), Q4_K_BEGIN = 16 };
  switch (as) {
  case ACCEL_CODES_Q8_0:
    return row + b * (HALF + RT_STEPS) + HALF;
  case ACCEL_CODES_Q4_0:
    return row + b * (HALF + RT_STEPS / 2) + HALF;
  case ACCEL_CODES_Q4_K:
    return row + b / PARTS * (Q4_K_BEGIN + PARTS * RT_STEPS / 2) + Q4_K_BEGIN + b % PARTS / 2 * RT_STEPS;
  case ACCEL_CODES_INT8_GROUPS:
    return row + b * RT_STEPS;
  default:
    return row + b * (RT_STEPS / 2);
  }
}

RT_FOR_AVX512 RT_INLINED void dots_avx512(enum accel_codes as, const float *x, const float *x_sums,
                                          const struct rows *rows, float *sums) {
  const float from = as == ACCEL_CODES_Q4_K ? 0 : -8;
  const __m512 levels =
      _mm512_add_ps(_mm512_set1_ps(from), _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  __m512 parts[ROWS];
  RT_EACH_OF_4_ROWS parts[r] = _mm512_setzero_ps();
  for (int64_t b = 0; b < rows->blocks; b++) {
    const __m512 first = _mm512_loadu_ps(x + b * RT_STEPS), second = _mm512_loadu_ps(x + b * RT_STEPS + LANES);
    if (rows->ahead != NULL) rt_read_ahead(rows->ahead + b * ROWS * bytes_of(as), ROWS * bytes_of(as));
    RT_EACH_OF_4_ROWS {
      const uint8_t *codes = codes_avx512(as, rows->codes[r], b);
      __m512 numbers[2];
      numbers_avx512(as, codes, (int)(b % 2), levels, numbers);
      const __m512 both = _mm512_fmadd_ps(first, numbers[0], _mm512_mul_ps(second, numbers[1]));
      parts[r] = _mm512_fmadd_ps(both, scale_avx512(as, codes, rows->scales[r] + b), parts[r]);
    }
  }
  for (int64_t b = 0; rows->has_offsets && b < rows->blocks; b += LANES)
    RT_EACH_OF_4_ROWS parts[r] =
        _mm512_fmadd_ps(_mm512_loadu_ps(x_sums + b), _mm512_loadu_ps(rows->offsets[r] + b), parts[r]);
  __m128 lanes[ROWS];
  RT_EACH_OF_4_ROWS lanes[r] = rt_quarter_lanes(rt_half_lanes(parts[r]));
  _mm_storeu_ps(sums, rt_sum_lanes(lanes));
}

#define DOTS(name, as)                                                                                                 \
  RT_FOR_AVX512 static void name(const float *x, const float *x_sums, const struct rows *rows, float *sums) {          \
    dots_avx512(as, x, x_sums, rows, sums);                                                                            \
  }

DOTS(dots_q8_0, ACCEL_CODES_Q8_0)
DOTS(dots_q4_0, ACCEL_CODES_Q4_0)
DOTS(dots_q4_k, ACCEL_CODES_Q4_K)
DOTS(dots_int8, ACCEL_CODES_INT8_GROUPS)
DOTS(dots_int4, ACCEL_CODES_INT4_GROUPS)
#endif

static dots_function *best_dots(enum accel_codes as) {
#if RT_WIDE
  if (__builtin_cpu_supports("x86-64-v4")) switch (as) {
    case ACCEL_CODES_Q8_0:
      return dots_q8_0;
    case ACCEL_CODES_Q4_0:
      return dots_q4_0;
    case ACCEL_CODES_Q4_K:
      return dots_q4_k;
    case ACCEL_CODES_INT8_GROUPS:
      return dots_int8;
    default:
      return dots_int4;
    }
#endif
  (void)as;
  return dots_plain;
}

/* ---- The row ---- */

static int64_t padded(int64_t blocks) {
  return (blocks + LANES - 1) / LANES * LANES;
}

/* The sum of each 32 elements of x. */
static void sum_steps(const float *x, int64_t blocks, float *to) {
  memset(to, 0, (size_t)padded(blocks) * sizeof *to);
  for (int64_t b = 0; b < blocks; b++)
    for (int i = 0; i < RT_STEPS; i++) to[b] += x[b * RT_STEPS + i];
}

/* Sums of the rows of W from `row` on, of so many that there are. */
static void multiply_rows(const struct rt_linear *matrix, dots_function *dots, const float *x, const float *x_sums,
                          int64_t row, int64_t count, float *sums) {
  const int64_t blocks = matrix->in / RT_STEPS, line = padded(blocks);
  float scales[ROWS * MOST], offsets[ROWS * MOST];
  const int64_t bytes = rt_linear_row_bytes(matrix->as, matrix->in);
  struct rows rows = {.as = matrix->as, .blocks = blocks, .has_offsets = rt_linear_has_offsets(matrix->as)};
#if RT_WIDE
  rows.ahead = rt_ahead_of(matrix->codes + row * bytes, bytes);
#endif
  for (int64_t r = 0; r < ROWS; r++) {
    const int64_t at = r < count ? r : 0;
    rows.codes[r] = matrix->codes + (row + at) * bytes;
    rows.scales[r] = scales + at * line;
    rows.offsets[r] = offsets + at * line;
    if (r >= count || (dots != dots_plain && has_scale_before(matrix->as))) continue;
    rt_linear_scales(matrix, row + r, scales + r * line, offsets + r * line);
    if (rows.has_offsets) memset(offsets + r * line + blocks, 0, (size_t)(line - blocks) * sizeof *offsets);
  }
  dots(x, x_sums, &rows, sums);
}

void rt_multiply_linear_row(const struct accel_quantized_gemm *gemm, const struct rt_linear *matrix, float *y,
                            const float *x) {
  enum { TOGETHER = 4 * ROWS }; /* numbers of y that are stored at a time */
  dots_function *const dots = best_dots(matrix->as);
  float x_sums[MOST];
  sum_steps(x, gemm->in / RT_STEPS, x_sums);
#pragma omp parallel for
  for (int64_t row = 0; row < gemm->out; row += TOGETHER) {
    const int64_t own = rt_least(TOGETHER, gemm->out - row);
    float sums[TOGETHER];
    for (int64_t r = 0; r < own; r += ROWS)
      multiply_rows(matrix, dots, x, x_sums, row + r, rt_least(ROWS, own - r), sums + r);
    rt_store_lines(ACCEL_F32, gemm->accumulate, y + row, own, sums, own, 1, own);
  }
}
