#include "runtime/weights/init.h"

#include "runtime/random/normal.h"
#include "runtime/random/philox.h"
#include "runtime/weights/safetensors.h"

#include <math.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* as in runtime/random/normal.c */
#endif

/* What is made at once: lanes of 4 words, and the values from them in order. */
enum { BLOCKS = PHILOX_LANES, VALUES = 4 * BLOCKS };
_Static_assert((int)BLOCKS == (int)NORMAL_LANES, "a lane of words is a lane of normals");

/* Element 4 * block + i comes from its block's word i, with its neighbour. */
static void to_normals(uint32_t words[4][BLOCKS], float mean, float deviation, float values[VALUES]) {
  float normal[4][BLOCKS];
  rt_normals(words[0], words[1], normal[0], normal[1]);
  rt_normals(words[2], words[3], normal[2], normal[3]);
  for (int lane = 0; lane < BLOCKS; lane++)
    for (int i = 0; i < 4; i++) values[4 * lane + i] = mean + deviation * normal[i][lane];
}

/* Rounding could make the upper bound of one just below it: the lower bound replaces it. */
static void to_uniforms(uint32_t words[4][BLOCKS], double low, double high, float values[VALUES]) {
  for (int k = 0; k < VALUES; k++) {
    float value = (float)(low + (high - low) * ((double)words[k % 4][k / 4] * 0x1p-32));
    values[k] = value < (float)high ? value : (float)low;
  }
}

static void fill_constant(float *values, int64_t count, float value) {
#pragma omp parallel for
  for (int64_t i = 0; i < count; i++) values[i] = value;
}

/* A chunk's values depend on its number alone, whichever thread makes it. */
static void fill_random(float *values, int64_t first, int64_t count, uint64_t seed, uint64_t stream,
                        const struct accel_tensor *tensor) {
  const int64_t end = first + count;
#pragma omp parallel for
  for (int64_t chunk = first / VALUES; chunk < (end + VALUES - 1) / VALUES; chunk++) {
    float made[VALUES];
    uint32_t words[4][BLOCKS];
    const int64_t begin = chunk * VALUES > first ? chunk * VALUES : first;
    const int64_t last = (chunk + 1) * VALUES < end ? (chunk + 1) * VALUES : end;
    rt_philox_lanes(seed, stream, (uint64_t)chunk * BLOCKS, words);
    if (tensor->init == ACCEL_NORMAL)
      to_normals(words, (float)tensor->a, (float)tensor->b, made);
    else
      to_uniforms(words, tensor->a, tensor->b, made);
    memcpy(values + begin - first, made + begin - chunk * VALUES, (size_t)(last - begin) * sizeof *made);
  }
}

/* Waves over positions, sines in the first half of the columns: those of a grid's two axes after each other. */
static void fill_waves(float *values, int64_t first, int64_t count, int64_t columns, double ratio, int64_t side) {
  const int64_t part = side > 0 ? columns / 2 : columns, half = part / 2;
#pragma omp parallel for
  for (int64_t i = 0; i < count; i++) {
    const int64_t row = (first + i) / columns, column = (first + i) % columns, at = column % part;
    const int64_t position = side == 0 ? row : column < part ? row % side : row / side;
    const double angle = (double)position * pow(ratio, (double)-(at % half));
    values[i] = (float)(at < half ? sin(angle) : cos(angle));
  }
}

void rt_init_part(const struct accel_tensor *tensor, int which, uint64_t seed, int64_t first, int64_t count,
                  float *values) {
  if (tensor->init == ACCEL_ZEROS) fill_constant(values, count, 0);
  if (tensor->init == ACCEL_ONES) fill_constant(values, count, 1);
  if (tensor->init == ACCEL_NORMAL || tensor->init == ACCEL_UNIFORM)
    fill_random(values, first, count, seed, RT_STREAM(RT_USE_INIT, which), tensor);
  if (tensor->init == ACCEL_SINUSOID && tensor->rank > 0)
    fill_waves(values, first, count, tensor->shape[tensor->rank - 1], tensor->a, (int64_t)tensor->b);
}

void rt_init_tensor(const struct accel_tensor *tensor, int which, uint64_t seed, float *values) {
  rt_init_part(tensor, which, seed, 0, rt_shape_count(tensor->rank, tensor->shape), values);
}
