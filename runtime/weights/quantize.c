#include "runtime/weights/quantize.h"

#include "include/accel/quantized_gemm.h"
#include "runtime/base/half.h"
#include "runtime/base/levels.h"
#include "runtime/base/linear_codes.h"
#include "runtime/base/wide.h"
#include "runtime/process/fail.h"
#include "runtime/weights/streamed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = ACCEL_QUANTIZED_BLOCK, NESTED = ACCEL_QUANTIZED_NESTED };

const struct accel_quantized *rt_quantized_of(const struct accel_program *program, int tensor) {
  for (int i = 0; i < program->n_quantized; i++) {
    const struct accel_quantized *quantized = &program->quantized[i];
    if (quantized->codes == tensor || quantized->absmax == tensor || quantized->nested_absmax == tensor ||
        quantized->nested_offset == tensor)
      return quantized;
  }
  return NULL;
}

struct accel_tensor rt_quantized_source(const struct accel_program *program, const struct accel_quantized *quantized) {
  struct accel_tensor source = {.name = program->tensors[quantized->codes].name,
                                .rank = 2,
                                .init = quantized->init,
                                .a = quantized->a,
                                .b = quantized->b};
  source.shape[0] = quantized->in_out ? quantized->in : quantized->out;
  source.shape[1] = quantized->in_out ? quantized->out : quantized->in;
  return source;
}

bool rt_has_codes(const struct named_tensor *found) {
  return found != NULL && (strcmp(found->tensor->dtype, "U8") == 0 || strcmp(found->tensor->dtype, "I8") == 0);
}

/* ---- Levels in their order ---- */

/* Levels by size, the code of each, and the middle between each and the next one. */
struct scale_of_levels {
  float middle[LEVELS_8];
  uint8_t code[LEVELS_8];
  int count;
};

/* Of equal levels, which 0 and -0 of FP4 are, the first code comes first. */
static void order(struct scale_of_levels *to, const float *levels, int count) {
  to->count = count;
  for (int i = 0; i < count; i++) {
    int at = i;
    for (; at > 0 && levels[to->code[at - 1]] > levels[i]; at--) to->code[at] = to->code[at - 1];
    to->code[at] = (uint8_t)i;
  }
  for (int i = 0; i + 1 < count; i++) to->middle[i] = (levels[to->code[i]] + levels[to->code[i + 1]]) / 2;
}

/* The code of the nearest level; of two that are as near, the lower one. */
static uint8_t code_of(const struct scale_of_levels *levels, float x) {
  int low = 0, high = levels->count - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (levels->middle[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  return levels->code[low];
}

/* ---- Blocks ---- */

static const float least = 1e-38f; /* that is divided by */

/* The scale of a block of `size` elements, of which the last one has `count`. Bits of magnitudes are ordered as these
 * are, and those of a NaN are above all: then it is the scale. */
RT_INLINED float scale_of(const float *x, int64_t count, int64_t size) {
  uint32_t most = 0;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < count; i++) {
    const float magnitude = fabsf(x[i]);
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    most = bits > most ? bits : most;
  }
  float scale;
  memcpy(&scale, &most, sizeof scale);
  return count < size && scale < least ? least : scale;
}

/* An element between -1 and 1: multiplied by the inverse of the scale, or, in a block that is not whole, divided. */
RT_INLINED float normal(float x, float scale, bool whole) {
  const float y = whole ? x * (1 / (scale > least ? scale : least)) : x / scale;
  return y > -1 ? y < 1 ? y : 1 : -1;
}

/* How many of the levels a number is above, of a block. 15 comparisons for many numbers at a time are faster than a
 * search for each. */
RT_INLINED void rt_quantize_block_4_body(const struct scale_of_levels *levels, const float *x, int64_t count,
                                         uint8_t *codes, float *scale) {
  float y[BLOCK] = {0};
  int32_t above[BLOCK];
  *scale = scale_of(x, count, BLOCK);
#pragma omp simd
  for (int64_t i = 0; i < count; i++) y[i] = normal(x[i], *scale, count == BLOCK);
#pragma omp simd
  for (int i = 0; i < BLOCK; i++) {
    int32_t sum = 0;
    for (int k = 0; k < LEVELS_4 - 1; k++) sum += levels->middle[k] < y[i];
    above[i] = sum;
  }
  for (int64_t i = 0; i < count; i += 2)
    codes[i / 2] = (uint8_t)(levels->code[above[i]] << 4 | levels->code[above[i + 1]]);
}

RT_FOR_WIDTHS(rt_quantize_block_4,
              (const struct scale_of_levels *levels, const float *x, int64_t count, uint8_t *codes, float *scale),
              (levels, x, count, codes, scale))

static void quantize_4(const struct scale_of_levels *levels, const float *x, int64_t count, uint8_t *codes,
                       float *scales) {
#pragma omp parallel for
  for (int64_t first = 0; first < count; first += BLOCK)
    rt_quantize_block_4(levels, x + first, count - first < BLOCK ? count - first : BLOCK, codes + first / 2,
                        &scales[first / BLOCK]);
}

/* Scales in 8 bits of their difference from their mean. */
static void quantize_scales(const float *scales, int64_t count, uint8_t *codes, float *nested, float *offset) {
  struct scale_of_levels levels;
  float map[LEVELS_8];
  double sum = 0;
  rt_levels_8(map);
  order(&levels, map, LEVELS_8);
  for (int64_t i = 0; i < count; i++) sum += scales[i];
  *offset = (float)(sum / (double)count);
  for (int64_t first = 0; first < count; first += NESTED) {
    const int64_t own = count - first < NESTED ? count - first : NESTED;
    float rest[NESTED];
    for (int64_t i = 0; i < own; i++) rest[i] = scales[first + i] - *offset;
    const float scale = nested[first / NESTED] = scale_of(rest, own, NESTED);
    for (int64_t i = 0; i < own; i++) codes[first + i] = code_of(&levels, normal(rest[i], scale, own == NESTED));
  }
}

/* ---- Rows of int8 ---- */

/* A row as float16, which bitsandbytes quantizes, by its largest magnitude. */
static float quantize_row(const float *x, int64_t count, int8_t *codes) {
  float most = 0;
  for (int64_t i = 0; i < count; i++) most = fmaxf(most, fabsf(rt_widen_float16(rt_narrow_float16(x[i]))));
  const float factor = most > 0 ? 1 / most * 127 : 0; /* in this order, as PyTorch divides 127 by a tensor */
  for (int64_t i = 0; i < count; i++) codes[i] = (int8_t)rintf(rt_widen_float16(rt_narrow_float16(x[i])) * factor);
  return most;
}

static void quantize_8(const float *x, int64_t rows, int64_t columns, int8_t *codes, float *scales) {
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r++) scales[r] = quantize_row(x + r * columns, columns, codes + r * columns);
}

/* ---- Even steps ---- */

static void quantize_linear(const struct accel_quantized *quantized, const float *x, int64_t rows, uint8_t *codes,
                            float *scales) {
  const int64_t in = quantized->in, group = quantized->group, bytes = rt_linear_row_bytes(quantized->as, in);
#pragma omp parallel for
  for (int64_t r = 0; r < rows; r++)
    rt_linear_quantize(quantized->as, in, group, x + r * in, codes + r * bytes,
                       scales + r * rt_linear_row_scales(quantized->as, in, group));
}

/* ---- All ---- */

static void *take(size_t count) {
  struct problem problem;
  float *memory = malloc(count * sizeof *memory);
  if (memory != NULL) return memory;
  rt_problem(&problem, "no memory to quantize weights in");
  rt_fail(&problem, 1);
}

static void *at(const struct accel_program *program, int tensor, void *weights) {
  return (char *)weights + program->tensors[tensor].offset;
}

/* Where a weight's codes and scales go. */
struct stored {
  void *codes, *absmax;
  float *scales; /* of blocks of 4-bit codes: absmax, or memory of their own until they are codes */
};

/* Rows from `row` on. Those of 64 rows end with a block, and so with a byte. */
static void quantize_some(const struct accel_quantized *quantized, const struct scale_of_levels *levels,
                          const struct stored *stored, const float *values, int64_t row, int64_t rows) {
  const int64_t first = row * quantized->in;
  if (rt_is_linear(quantized->as))
    quantize_linear(
        quantized, values, rows, (uint8_t *)stored->codes + row * rt_linear_row_bytes(quantized->as, quantized->in),
        (float *)stored->absmax + row * rt_linear_row_scales(quantized->as, quantized->in, quantized->group));
  else if (quantized->as == ACCEL_CODES_INT8)
    quantize_8(values, rows, quantized->in, (int8_t *)stored->codes + first, (float *)stored->absmax + row);
  else
    quantize_4(levels, values, rows * quantized->in, (uint8_t *)stored->codes + first / 2,
               stored->scales + first / BLOCK);
}

/* How many rows to quantize at a time. */
static int64_t rows_at_once(const struct accel_quantized *quantized) {
  enum { ELEMENTS = 1 << 18 };
  const int64_t rows = ELEMENTS / quantized->in / BLOCK * BLOCK, most = rows > BLOCK ? rows : BLOCK;
  return most < quantized->out ? most : quantized->out;
}

void rt_quantize(const struct accel_program *program, const struct accel_quantized *quantized,
                 const struct rt_rows *rows, void *weights) {
  const int64_t blocks = (quantized->out * quantized->in + BLOCK - 1) / BLOCK, most = rows_at_once(quantized);
  const bool nested = quantized->nested_absmax >= 0, levelled = rt_levels_4(quantized->as) != NULL;
  void *absmax = quantized->absmax >= 0 ? at(program, quantized->absmax, weights) : weights; /* or none is written */
  struct stored stored = {at(program, quantized->codes, weights), absmax, NULL};
  struct scale_of_levels levels;
  float *values = take((size_t)(most * quantized->in));
  stored.scales = nested ? take((size_t)blocks) : stored.absmax;
  if (levelled) order(&levels, rt_levels_4(quantized->as), LEVELS_4);
  for (int64_t row = 0; row < quantized->out; row += most) {
    const int64_t own = quantized->out - row < most ? quantized->out - row : most;
    rows->read(rows->context, row, own, values);
    quantize_some(quantized, &levels, &stored, values, row, own);
  }
  free(values);
  if (!nested) return;
  quantize_scales(stored.scales, blocks, stored.absmax, at(program, quantized->nested_absmax, weights),
                  at(program, quantized->nested_offset, weights));
  free(stored.scales);
}

/* ---- Back ---- */

/* A weight that is written of its codes. */
struct coded {
  const struct accel_program *program;
  const struct accel_quantized *quantized;
  const void *weights;
};

static const void *from(const struct coded *coded, int tensor) {
  return rt_parameter_at(coded->program, coded->weights, tensor);
}

/* bitsandbytes' int8_vectorwise_dequant. */
static void widen_rows(const struct coded *coded, float *values) {
  const struct accel_quantized *quantized = coded->quantized;
  const int64_t out = quantized->out, in = quantized->in;
  const int8_t *codes = from(coded, quantized->codes);
  const float *scales = from(coded, quantized->absmax);
#pragma omp parallel for
  for (int64_t o = 0; o < out; o++)
    for (int64_t i = 0; i < in; i++) {
      const float scaled = (float)codes[o * in + i] * scales[o];
      values[quantized->in_out ? i * out + o : o * in + i] = scaled * (float)(1.0 / 127);
    }
}

static void widen_linear(const struct coded *coded, float *values) {
  const struct accel_quantized *quantized = coded->quantized;
  const int64_t out = quantized->out, in = quantized->in;
  const float *scales = quantized->absmax >= 0 ? from(coded, quantized->absmax) : NULL;
  const struct rt_linear linear = {quantized->as, in, quantized->group, from(coded, quantized->codes), scales};
#pragma omp parallel for
  for (int64_t o = 0; o < out; o++)
    for (int64_t i = 0; i < in; i += RT_STEPS) {
      float some[RT_STEPS];
      rt_linear_widen(&linear, o, i, RT_STEPS, some);
      for (int64_t k = 0; k < RT_STEPS; k++) values[quantized->in_out ? (i + k) * out + o : o * in + i + k] = some[k];
    }
}

static bool make_floats(const struct tensor_view *tensor, void *out) {
  const struct coded *coded = tensor->source;
  if (rt_is_linear(coded->quantized->as)) {
    widen_linear(coded, out);
    return true;
  }
  if (coded->quantized->as == ACCEL_CODES_INT8) {
    widen_rows(coded, out);
    return true;
  }
  const struct accel_quantized *quantized = coded->quantized;
  const uint8_t *codes = from(coded, quantized->codes);
  const float *levels = rt_levels_4(quantized->as);
  const int64_t count = quantized->out * quantized->in;
  float map[LEVELS_8], *values = out;
  const bool nested = quantized->nested_absmax >= 0;
  const struct rt_scales scales = {from(coded, quantized->absmax),
                                   nested ? from(coded, quantized->nested_absmax) : NULL,
                                   nested ? from(coded, quantized->nested_offset) : NULL, map};
  rt_levels_8(map);
#pragma omp parallel for
  for (int64_t first = 0; first < count; first += BLOCK) {
    float scale;
    rt_block_scales(&scales, first / BLOCK, 1, &scale);
    for (int64_t i = first; i < first + BLOCK && i < count; i++) {
      const float value = levels[rt_code_4(codes, i)] * scale;
      values[quantized->in_out ? i % quantized->in * quantized->out + i / quantized->in : i] = value;
    }
  }
  return true;
}

static const struct accel_quantized *named(const struct accel_program *program, const char *name, bool as_codes) {
  for (int i = 0; i < program->n_quantized; i++) {
    const struct accel_quantized *quantized = &program->quantized[i];
    const int codes[] = {quantized->codes, -1, -1};
    const int scales[] = {quantized->absmax, quantized->nested_absmax, quantized->nested_offset};
    for (int k = 0; k < 3; k++) {
      const int tensor = as_codes ? codes[k] : scales[k];
      if (tensor >= 0 && strcmp(program->tensors[tensor].name, name) == 0) return quantized;
    }
  }
  return NULL;
}

bool rt_is_scale(const struct accel_program *program, const char *name) {
  return named(program, name, false) != NULL;
}

static bool make_float_view(struct tensor_view *tensor, struct coded coded) {
  const struct accel_tensor source = rt_quantized_source(coded.program, coded.quantized);
  struct coded *kept = malloc(sizeof *kept);
  if (kept == NULL) return false;
  *kept = coded;
  tensor->dtype = ACCEL_FLOAT32;
  tensor->rank = source.rank;
  memcpy(tensor->shape, source.shape, sizeof tensor->shape);
  tensor->size = (size_t)(coded.quantized->out * coded.quantized->in) * sizeof(float);
  tensor->make = make_floats;
  tensor->source = kept;
  return true;
}

bool rt_tensors_dequantize(const struct accel_program *program, const void *weights, struct tensor_list *tensors,
                           struct problem *problem) {
  int count = 0;
  bool good = true;
  for (int i = 0; i < tensors->count; i++) {
    struct tensor_view tensor = tensors->items[i];
    const struct accel_quantized *quantized = named(program, tensor.name, true);
    if (rt_is_scale(program, tensor.name)) {
      free(tensor.name);
      continue;
    }
    if (quantized != NULL) good &= make_float_view(&tensor, (struct coded){program, quantized, weights});
    tensors->items[count++] = tensor;
  }
  tensors->count = count;
  return good || rt_problem(problem, "no memory for the list of weights");
}
