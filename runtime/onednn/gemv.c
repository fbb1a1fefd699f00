#include "include/accel/gemv.h"

#include "runtime/base/wide.h"
#include "runtime/onednn/lines.h"

#include <string.h>

/* Lines of b are read at STREAMS places at once, from each of which a thread reads EACH lines that follow each other:
 * long streams, which a processor reads ahead by itself, and whose sums do not wait for each other. */
enum { STREAMS = 4, EACH = 16, TOGETHER = STREAMS * EACH, LANES = 16 };

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

static inline float sum_of_lanes(const lanes *of) {
  float parts[LANES];
  memcpy(parts, of, sizeof parts);
  for (int width = LANES / 2; width > 0; width /= 2)
    for (int i = 0; i < width; i++) parts[i] += parts[i + width];
  return parts[0];
}

/* A product is a statement by itself, which no compiler fuses with the sum: the bits are those of all processors. */
RT_INLINED void add_product(lanes *sum, const lanes *x, const float *b) {
  const lanes product = *x * *(const lanes *)b;
  *sum += product;
}

/* sums[s] = x times the line of depth elements at b + s * stream, for each stream. */
RT_INLINED void rt_row_dots_body(int64_t depth, const float *x, const float *b, int64_t stream, float *sums) {
  const float *b0 = b, *b1 = b0 + stream, *b2 = b1 + stream, *b3 = b2 + stream;
  lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  int64_t i = 0;
  for (; i + LANES <= depth; i += LANES) {
    const lanes own = *(const lanes *)(x + i);
    add_product(&s0, &own, b0 + i);
    add_product(&s1, &own, b1 + i);
    add_product(&s2, &own, b2 + i);
    add_product(&s3, &own, b3 + i);
  }
  if (i < depth) {
    float own[LANES] = {0}, rest[STREAMS][LANES] = {0};
    const size_t left = (size_t)(depth - i) * sizeof *own;
    memcpy(own, x + i, left);
    for (int s = 0; s < STREAMS; s++) memcpy(rest[s], b + s * stream + i, left);
    add_product(&s0, (const lanes *)own, rest[0]);
    add_product(&s1, (const lanes *)own, rest[1]);
    add_product(&s2, (const lanes *)own, rest[2]);
    add_product(&s3, (const lanes *)own, rest[3]);
  }
  sums[0] = sum_of_lanes(&s0);
  sums[1] = sum_of_lanes(&s1);
  sums[2] = sum_of_lanes(&s2);
  sums[3] = sum_of_lanes(&s3);
}

RT_FOR_WIDTHS(rt_row_dots, (int64_t depth, const float *x, const float *b, int64_t stream, float *sums),
              (depth, x, b, stream, sums))

/* Numbers of y, of so many lines. Where they are less than TOGETHER, each stream is the line at hand. */
static void multiply_lines(int64_t count, int64_t depth, float *y, const float *x, const float *b, int64_t b_step,
                           float beta) {
  const int64_t each = count == TOGETHER ? EACH : count, streams = count == TOGETHER ? STREAMS : 1;
  const int64_t stream = streams > 1 ? each * b_step : 0;
  for (int64_t line = 0; line < each; line++) {
    float sums[STREAMS];
    rt_row_dots(depth, x, b + line * b_step, stream, sums);
    for (int64_t s = 0; s < streams; s++) {
      float *to = &y[s * each + line];
      *to = beta != 0 ? sums[s] + beta * *to : sums[s];
    }
  }
}

void accel_gemv(int64_t columns, int64_t depth, float *y, const float *x, const float *b, int64_t b_step, float beta) {
#pragma omp parallel for
  for (int64_t first = 0; first < columns; first += TOGETHER)
    multiply_lines(rt_least(TOGETHER, columns - first), depth, y + first, x, b + first * b_step, b_step, beta);
}
