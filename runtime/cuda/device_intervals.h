/* The intervals of a profile on a GPU: which of the program's parts the host ran when it put work into streams. Needs
 * nothing of CUDA. */
#ifndef RUNTIME_CUDA_DEVICE_INTERVALS_H
#define RUNTIME_CUDA_DEVICE_INTERVALS_H

#include "runtime/cuda/events.h"

/* A call of CUDA that was made in an interval. */
struct interval_call {
  uint32_t call;
  int64_t interval;
};

struct device_intervals {
  int *parts; /* of interval 1, 2, ...; -1: none of the program's */
  int64_t count, capacity;
  struct interval_call *calls;
  size_t n_calls, calls_capacity;
  bool lost; /* there was no memory for all */
};

/* Ends the current interval, number count + 1, as one of `part`. */
void rt_device_intervals_add(struct device_intervals *intervals, int part);

/* Records that a call of CUDA was made in this interval. */
void rt_device_intervals_add_call(struct device_intervals *intervals, uint32_t call, int64_t interval);

/* Gives events the intervals of their calls, and the parts that these were. */
void rt_events_name(struct device_events *events, struct device_intervals *intervals,
                    const struct accel_measured *parts);

void rt_device_intervals_free(struct device_intervals *intervals);

#endif
