#include "runtime/tracking/histogram.h"

#include <math.h>

static void add_sums(struct histogram *histogram, const float *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const double value = (double)values[i];
    if (!isfinite(value)) continue;
    if (histogram->total == 0 || value < histogram->least) histogram->least = value;
    if (histogram->total == 0 || value > histogram->most) histogram->most = value;
    histogram->total++;
    histogram->sum += value;
    histogram->sum_of_squares += value * value;
  }
}

struct histogram rt_histogram_of(struct bins *bins, const float *values, size_t count) {
  struct histogram histogram = {.limits = bins->limits, .counts = bins->counts, .count = BINS};
  add_sums(&histogram, values, count);
  const double width = (histogram.most - histogram.least) / BINS;
  for (int i = 0; i < BINS; i++) bins->limits[i] = histogram.least + (i + 1) * width, bins->counts[i] = 0;
  bins->limits[BINS - 1] = histogram.most;
  for (size_t i = 0; i < count; i++) {
    if (!isfinite(values[i])) continue;
    const double at = width > 0 ? ((double)values[i] - histogram.least) / width : 0;
    bins->counts[at < BINS ? (int)at : BINS - 1]++;
  }
  return histogram;
}
