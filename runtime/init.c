#include "init.h"

#include "philox.h"
#include "safetensors.h"

#include <math.h>

/* Four standard normals from four words (Box and Muller, "A note on the generation of random normal deviates",
 * Annals of Mathematical Statistics 29, 1958). */
static void four_normals(struct philox_block words, double out[4]) {
  for (int pair = 0; pair < 4; pair += 2) {
    double uniform = ((double)words.word[pair] + 1) * 0x1p-32; /* (0, 1]: its logarithm is finite */
    double radius = sqrt(-2 * log(uniform)), angle = 6.283185307179586 * 0x1p-32 * (double)words.word[pair + 1];
    out[pair] = radius * cos(angle);
    out[pair + 1] = radius * sin(angle);
  }
}

static void four_uniforms(struct philox_block words, double out[4]) {
  for (int i = 0; i < 4; i++) out[i] = (double)words.word[i] * 0x1p-32;
}

static void fill_constant(float *values, int64_t count, float value) {
#pragma omp parallel for
  for (int64_t i = 0; i < count; i++) values[i] = value;
}

/* A block of the generator makes elements 4 * block …, whichever thread does it. */
static void fill_random(float *values, int64_t count, uint64_t seed, uint64_t stream,
                        const struct accel_tensor *tensor) {
  bool normal = tensor->init == ACCEL_NORMAL;
  double base = tensor->a, scale = normal ? tensor->b : tensor->b - tensor->a;
#pragma omp parallel for
  for (int64_t block = 0; block < (count + 3) / 4; block++) {
    double four[4];
    struct philox_block words = rt_philox_block(seed, stream, (uint64_t)block);
    if (normal)
      four_normals(words, four);
    else
      four_uniforms(words, four);
    for (int64_t i = 4 * block; i < count && i < 4 * block + 4; i++) values[i] = (float)(base + scale * four[i % 4]);
  }
}

void rt_init_tensor(const struct accel_tensor *tensor, int which, uint64_t seed, float *values) {
  int64_t count = rt_shape_count(tensor->rank, tensor->shape);
  if (tensor->init == ACCEL_ZEROS) fill_constant(values, count, 0);
  if (tensor->init == ACCEL_ONES) fill_constant(values, count, 1);
  if (tensor->init == ACCEL_NORMAL || tensor->init == ACCEL_UNIFORM)
    fill_random(values, count, seed, RT_STREAM(RT_USE_INIT, which), tensor);
}
