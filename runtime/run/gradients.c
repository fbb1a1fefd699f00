/* What is logged of gradients. */
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

static void log_norm(struct accel_run *run, const struct accel_tensor *tensor, double squares, double scale) {
  char name[600];
  snprintf(name, sizeof name, "grad_norm/%s", tensor->name);
  accel_log(run, name, fabs(scale) * sqrt(squares));
}

void accel_log_gradients(struct accel_run *run, const void *gradients, double scale) {
  for (int i = 0; i < run->program->n_tensors; i++) {
    const struct accel_tensor *tensor = &run->program->tensors[i];
    int64_t offset = run->program->gradients[i].offset, count = 1;
    if (offset < 0) continue;
    for (int d = 0; d < tensor->rank; d++) count *= tensor->shape[d];
    log_norm(run, tensor, sum_of_squares((const float *)((const char *)gradients + offset), count), scale);
  }
}

void accel_log_gradient_norms(struct accel_run *run, const double *squares, double scale) {
  for (int i = 0; i < run->program->n_tensors; i++)
    if (run->program->gradients[i].offset >= 0) log_norm(run, &run->program->tensors[i], *squares++, scale);
}

void accel_log_noise(struct accel_run *run, const float noise[2]) {
  accel_log(run, "noise_scale", (double)noise[1] / noise[0]);
}
