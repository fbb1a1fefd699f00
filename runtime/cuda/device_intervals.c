#include "runtime/cuda/device_intervals.h"

#include <stdlib.h>

void rt_device_intervals_add(struct device_intervals *intervals, int part) {
  if (intervals->count == intervals->capacity) {
    int64_t capacity = intervals->capacity > 0 ? 2 * intervals->capacity : 4096;
    int *parts = realloc(intervals->parts, (size_t)capacity * sizeof *parts);
    intervals->lost |= parts == NULL;
    if (parts == NULL) return;
    intervals->parts = parts;
    intervals->capacity = capacity;
  }
  intervals->parts[intervals->count++] = part;
}

void rt_device_intervals_add_call(struct device_intervals *intervals, uint32_t call, int64_t interval) {
  if (intervals->n_calls == intervals->calls_capacity) {
    size_t capacity = intervals->calls_capacity > 0 ? 2 * intervals->calls_capacity : 4096;
    struct interval_call *calls = realloc(intervals->calls, capacity * sizeof *calls);
    intervals->lost |= calls == NULL;
    if (calls == NULL) return;
    intervals->calls = calls;
    intervals->calls_capacity = capacity;
  }
  intervals->calls[intervals->n_calls++] = (struct interval_call){call, interval};
}

static int by_call(const void *a, const void *b) {
  uint32_t x = ((const struct interval_call *)a)->call, y = ((const struct interval_call *)b)->call;
  return (x > y) - (x < y);
}

void rt_events_name(struct device_events *events, struct device_intervals *intervals,
                    const struct accel_measured *parts) {
  if (intervals->n_calls > 0) qsort(intervals->calls, intervals->n_calls, sizeof *intervals->calls, by_call);
  for (size_t i = 0; i < events->count && intervals->n_calls > 0; i++) {
    struct device_event *event = &events->items[i];
    const struct interval_call wanted = {.call = event->call};
    const struct interval_call *found = NULL;
    if (event->call != 0) found = bsearch(&wanted, intervals->calls, intervals->n_calls, sizeof wanted, by_call);
    if (found == NULL || found->interval < 1 || found->interval > intervals->count ||
        intervals->parts[found->interval - 1] < 0)
      continue;
    event->interval = found->interval;
    event->part = &parts[intervals->parts[found->interval - 1]];
  }
  events->lost |= intervals->lost;
}

void rt_device_intervals_free(struct device_intervals *intervals) {
  free(intervals->parts);
  free(intervals->calls);
  *intervals = (struct device_intervals){0};
}
