/* What ends a step: functions that are the same text on every device. The header of a device that includes this says in
 * ACCEL_FUNCTION what a function begins with. */
#ifndef ACCEL_STEPS_H
#define ACCEL_STEPS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* The scale for the next step, in the arithmetic of torch.amp.GradScaler: smaller after an overflow, larger after
 * `interval` steps without one, which tracker[0] counts. */
ACCEL_FUNCTION void accel_rescale(float scale[1], int32_t tracker[1], bool finite, double growth, double backoff,
                                  int32_t interval) {
  const float kept = finite ? scale[0] : (float)(scale[0] * backoff);
  const int32_t count = finite ? tracker[0] + 1 : 0;
  const float grown = (float)(kept * growth);
  const bool grows = count >= interval;
  scale[0] = grows && isfinite(grown) ? grown : kept;
  tracker[0] = grows ? 0 : count;
}

/* The same in the arithmetic of DeepSpeed's DynamicLossScaler: the scale falls at the overflow of number `hysteresis`
 * and at those after it, which left[0] counts down to 1, from the top again where the scale grows, or, if
 * `consecutive`, at each step without overflow. It does not fall below `least`; false where an overflow finds it there.
 */
ACCEL_FUNCTION bool accel_rescale_late(float scale[1], int32_t tracker[1], int32_t left[1], bool finite, double growth,
                                       double backoff, int32_t interval, int32_t hysteresis, bool consecutive,
                                       float least) {
  const bool falls = !finite && left[0] <= 1;
  const bool begins = finite && (consecutive || tracker[0] + 1 >= interval);
  const bool ends = falls && scale[0] == least;
  left[0] = begins ? hysteresis : !finite && left[0] > 1 ? left[0] - 1 : left[0];
  accel_rescale(scale, tracker, finite, growth, falls ? backoff : 1.0, interval);
  scale[0] = scale[0] < least ? least : scale[0];
  return !ends;
}

/* From the norm of the gradient of one micro-batch, of b samples, and of the step's, of that many micro-batches:
 * estimates of the squared norm of the true gradient and of the trace of its covariance over samples (McCandlish et
 * al., arXiv:1812.06162, appendix A.1). Each moves its average over steps by the fraction `smoothing`. */
ACCEL_FUNCTION void accel_note_noise(float averages[2], double b, float smoothing, double single, double whole,
                                     int64_t micro_batches) {
  const double B = b * (double)micro_batches;
  const double signal = (B * whole * whole - b * single * single) / (B - b);
  const double noise = (single * single - whole * whole) / (1.0 / b - 1.0 / B);
  const bool counts = micro_batches > 1 && isfinite(single) && isfinite(whole);
  const float moved[2] = {averages[0] + smoothing * ((float)signal - averages[0]),
                          averages[1] + smoothing * ((float)noise - averages[1])};
  for (int i = 0; i < 2; i++) averages[i] = counts ? moved[i] : averages[i];
}

/* A phase of a rate: from where to where it goes, and how far it is, from 0 to 1. */
struct accel_phase {
  double from, to, done;
};

/* The phase at step `at` of two: from `first` up to `highest` at step `peak`, where that is after the first step, and
 * down to `last` at step `end`. */
ACCEL_FUNCTION struct accel_phase accel_phase_of(double at, double peak, double end, double first, double highest,
                                                 double last) {
  const bool rises = peak > 0.0 && at <= peak;
  const double down = peak < end ? fmin((at - peak) / (end - peak), 1.0) : 1.0;
  const struct accel_phase phase = {rises ? first : highest, rises ? highest : last, rises ? at / peak : down};
  return phase;
}

#endif
