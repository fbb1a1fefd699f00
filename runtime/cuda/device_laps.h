/* Laps of a profile on a GPU: which of the program's parts the host was at when it put work into streams. Needs nothing
 * of CUDA. */
#ifndef RUNTIME_CUDA_DEVICE_LAPS_H
#define RUNTIME_CUDA_DEVICE_LAPS_H

#include "runtime/cuda/events.h"

/* A call of CUDA that was made in a lap. */
struct lap_call {
  uint32_t call;
  int64_t lap;
};

struct device_laps {
  int *parts; /* of lap 1, 2, ...; -1: none of the program's */
  int64_t count, capacity;
  struct lap_call *calls;
  size_t n_calls, calls_capacity;
  bool lost; /* there was no memory for all */
};

/* The lap that is at hand, number count + 1, ends. */
void rt_laps_add(struct device_laps *laps, int part);

/* A call of CUDA was made in this lap. */
void rt_laps_join(struct device_laps *laps, uint32_t call, int64_t lap);

/* Gives events the laps of their calls, and the parts that these were. */
void rt_events_name(struct device_events *events, struct device_laps *laps, const struct accel_measured *parts);

void rt_device_laps_free(struct device_laps *laps);

#endif
