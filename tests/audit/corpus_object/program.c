/* A program for its object. Build: gcc -std=c17 -O2 program.c -o program $(pkg-config --cflags --libs accel-runtime) */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WEIGHTS = 64, ROWS = 8 };

static float weights[WEIGHTS], gradients[WEIGHTS], sums[ROWS];

static void fill(float gradients[static WEIGHTS], int64_t at) {
  for (int i = 0; i < WEIGHTS; i++) gradients[i] = sqrtf((float)(at % 7) + (float)i);
}

static __attribute__((noinline)) void add_rows(float sums[static ROWS], const float gradients[static WEIGHTS]) {
#pragma omp parallel for
  for (int i = 0; i < ROWS; i++) {
    float sum = 0.0f;
    for (int j = 0; j < WEIGHTS / ROWS; j++) sum += gradients[i * (WEIGHTS / ROWS) + j];
    sums[i] = sum;
  }
}

static __attribute__((noinline)) void update(float weights[static WEIGHTS], const float gradients[static WEIGHTS]) {
  for (int i = 0; i < WEIGHTS; i++) weights[i] -= 0.01f * gradients[i];
}

static __attribute__((noinline)) void step(int64_t at) {
  fill(gradients, at);
  add_rows(sums, gradients);
  update(weights, gradients);
}

int main(void) {
  memset(weights, 0, sizeof weights);
  for (int64_t at = 0; at < 100; at++) step(at);
  return weights[0] > 1.0f;
}
