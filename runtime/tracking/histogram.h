/* Histograms of values, for the trackers that show them. */
#ifndef RUNTIME_TRACKING_HISTOGRAM_H
#define RUNTIME_TRACKING_HISTOGRAM_H

#include "runtime/tracking/sink.h"

enum { BINS = 64 };

struct bins {
  double limits[BINS], counts[BINS];
};

/* Counts the values in BINS ranges of one width, from the least to the most; those that are not finite are left out.
 * The histogram refers to `bins`. */
struct histogram rt_histogram_of(struct bins *bins, const float *values, size_t count);

#endif
