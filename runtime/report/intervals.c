#include "runtime/report/intervals.h"

#include "include/accel/profile.h"
#include "runtime/base/clock.h"

#include <stdlib.h>

/* Of this process: a step calls accel_profile_part without a run to find them in. */
static struct intervals intervals;
static bool active;
static int64_t step;
static double began, last;
static size_t longest; /* of the steps so far, in intervals */

const struct intervals *rt_intervals(void) {
  return &intervals;
}

bool rt_is_measured(const struct accel_profile *profile, int64_t step) {
  int64_t cycle = profile->wait + profile->warmup + profile->active, at = step - profile->skip_first;
  if (at < 0 || (profile->repeat > 0 && at / cycle >= profile->repeat)) return false;
  return at % cycle >= profile->wait + profile->warmup;
}

/* Room for a step as long as the longest so far: then the intervals themselves need none. */
static void make_room(void) {
  size_t wanted = intervals.count + (longest > 0 ? 2 * longest : 4096);
  if (wanted <= intervals.capacity) return;
  size_t capacity = wanted > 2 * intervals.capacity ? wanted : 2 * intervals.capacity;
  struct interval *items = realloc(intervals.items, capacity * sizeof *items);
  if (items == NULL) return;
  intervals.items = items;
  intervals.capacity = capacity;
}

static void add(int part, double start, double end) {
  if (intervals.count == intervals.capacity) make_room();
  if (intervals.count == intervals.capacity) {
    intervals.lost = true;
    return;
  }
  intervals.items[intervals.count++] = (struct interval){part, step, start, end - start};
}

void rt_intervals_begin(const struct accel_profile *profile, int64_t at, int64_t number) {
  active = rt_is_measured(profile, number);
  if (!active) return;
  make_room();
  step = at;
  began = last = rt_now();
}

void accel_profile_part(int part) {
  if (!active) return;
  double now = rt_now();
  add(part, last, now);
  last = now;
}

void accel_end_profile_step(void) {
  if (!active) return;
  double now = rt_now();
  add(PART_REST, last, now);
  add(PART_STEP, began, now);
  size_t of_step = 0;
  while (of_step < intervals.count && intervals.items[intervals.count - 1 - of_step].step == step) of_step++;
  if (of_step > longest) longest = of_step;
  active = false;
}

void rt_intervals_free(void) {
  free(intervals.items);
  intervals = (struct intervals){0};
}
