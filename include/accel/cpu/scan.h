/* The gradient of a selective scan. */
#ifndef ACCEL_CPU_SCAN_H
#define ACCEL_CPU_SCAN_H

#include "functions.h"

/* One step of one channel backwards, over its states [count]: from the slope of its y the gradients of u and of delta,
 * which is `step`, and what is added to those of a (da), b (db) and c (dc) of the step. dh is the gradient of the
 * states, which is carried from the step after it to the one before. h: the states; before: those of the step before,
 * where `has_before` is 1; any where it is 0. */
static inline __attribute__((always_inline)) void accel_scan_back(size_t count, float step, float own, float slope,
                                                                  float has_before, const float *h, const float *before,
                                                                  const float *a, const float *b, const float *c,
                                                                  float *dh, float *da, float *db, float *dc, float *du,
                                                                  float *ddelta) {
  float of_u = 0.0f, of_step = 0.0f;
#pragma omp simd reduction(+ : of_u, of_step)
  for (size_t n = 0; n < count; n++) {
    const float decay = accel_exp(step * a[n]), g = dh[n] + slope * c[n];
    const float past = g * has_before * before[n] * decay;
    of_u += g * step * b[n];
    of_step += past * a[n] + g * b[n] * own;
    da[n] += past * step;
    db[n] += g * step * own;
    dc[n] += slope * h[n];
    dh[n] = g * decay;
  }
  *du = of_u;
  *ddelta = of_step;
}

#endif
