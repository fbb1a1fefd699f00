#include "runtime/cuda/device_laps.h"

#include <stdlib.h>

void rt_laps_add(struct device_laps *laps, int part) {
  if (laps->count == laps->capacity) {
    int64_t capacity = laps->capacity > 0 ? 2 * laps->capacity : 4096;
    int *parts = realloc(laps->parts, (size_t)capacity * sizeof *parts);
    laps->lost |= parts == NULL;
    if (parts == NULL) return;
    laps->parts = parts;
    laps->capacity = capacity;
  }
  laps->parts[laps->count++] = part;
}

void rt_laps_join(struct device_laps *laps, uint32_t call, int64_t lap) {
  if (laps->n_calls == laps->calls_capacity) {
    size_t capacity = laps->calls_capacity > 0 ? 2 * laps->calls_capacity : 4096;
    struct lap_call *calls = realloc(laps->calls, capacity * sizeof *calls);
    laps->lost |= calls == NULL;
    if (calls == NULL) return;
    laps->calls = calls;
    laps->calls_capacity = capacity;
  }
  laps->calls[laps->n_calls++] = (struct lap_call){call, lap};
}

static int by_call(const void *a, const void *b) {
  uint32_t x = ((const struct lap_call *)a)->call, y = ((const struct lap_call *)b)->call;
  return (x > y) - (x < y);
}

void rt_events_name(struct device_events *events, struct device_laps *laps, const struct accel_measured *parts) {
  if (laps->n_calls > 0) qsort(laps->calls, laps->n_calls, sizeof *laps->calls, by_call);
  for (size_t i = 0; i < events->count && laps->n_calls > 0; i++) {
    struct device_event *event = &events->items[i];
    const struct lap_call wanted = {.call = event->call};
    const struct lap_call *found = NULL;
    if (event->call != 0) found = bsearch(&wanted, laps->calls, laps->n_calls, sizeof wanted, by_call);
    if (found == NULL || found->lap < 1 || found->lap > laps->count || laps->parts[found->lap - 1] < 0) continue;
    event->lap = found->lap;
    event->part = &parts[laps->parts[found->lap - 1]];
  }
  events->lost |= laps->lost;
}

void rt_device_laps_free(struct device_laps *laps) {
  free(laps->parts);
  free(laps->calls);
  *laps = (struct device_laps){0};
}
