/* What is told of gradients. */
#include "include/accel/hooks.h"
#include "runtime/run/run.h"

#include <math.h>
#include <stdio.h>

/* In chunks, so that it does not depend on the number of threads. */
static double sum_of_squares(const float *values, int64_t count) {
  enum { CHUNK = 16384 };
  double total = 0;
  for (int64_t first = 0; first < count; first += CHUNK) {
    int64_t end = count - first < CHUNK ? count : first + CHUNK;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = first; i < end; i++) sum += (double)values[i] * values[i];
    total += sum;
  }
  return total;
}

void accel_log_gradients(struct accel_run *run, const void *gradients, double scale) {
  for (int i = 0; i < run->program->n_tensors; i++) {
    const struct accel_tensor *tensor = &run->program->tensors[i];
    int64_t place = run->program->gradients[i], count = 1;
    char name[600];
    if (place < 0) continue;
    for (int d = 0; d < tensor->rank; d++) count *= tensor->shape[d];
    snprintf(name, sizeof name, "grad_norm/%s", tensor->name);
    double squares = sum_of_squares((const float *)((const char *)gradients + place), count);
    accel_log(run, name, fabs(scale) * sqrt(squares));
  }
}

void accel_log_noise(struct accel_run *run, const float noise[2]) {
  accel_log(run, "noise_scale", (double)noise[1] / noise[0]);
}
