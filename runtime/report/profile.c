#include "runtime/profile.h"

#include "runtime/report/laps.h"
#include "runtime/run/run.h"

#include <stdlib.h>

/* Of this process: the hot loop calls accel_lap with nothing in its hands. */
static struct laps laps;
static bool active;
static int64_t step;
static double began, last;
static size_t longest; /* of the steps so far, in laps */

const struct laps *rt_laps(void) {
  return &laps;
}

bool rt_is_measured(const struct accel_profile *profile, int64_t step) {
  int64_t cycle = profile->wait + profile->warmup + profile->active, at = step - profile->skip_first;
  if (at < 0 || (profile->repeat > 0 && at / cycle >= profile->repeat)) return false;
  return at % cycle >= profile->wait + profile->warmup;
}

/* Room for a step as long as the longest so far: then the laps themselves need none. */
static void make_room(void) {
  size_t wanted = laps.count + (longest > 0 ? 2 * longest : 4096);
  if (wanted <= laps.capacity) return;
  size_t capacity = wanted > 2 * laps.capacity ? wanted : 2 * laps.capacity;
  struct lap *items = realloc(laps.items, capacity * sizeof *items);
  if (items == NULL) return;
  laps.items = items;
  laps.capacity = capacity;
}

static void add(int part, double start, double end) {
  if (laps.count == laps.capacity) make_room();
  if (laps.count == laps.capacity) {
    laps.lost = true;
    return;
  }
  laps.items[laps.count++] = (struct lap){part, step, start, end - start};
}

void accel_begin_laps(struct accel_run *run, int64_t at) {
  active = rt_is_measured(&run->program->profile, at - run->first_step);
  if (!active) return;
  make_room();
  step = at;
  began = last = rt_now();
}

void accel_lap(int part) {
  if (!active) return;
  double now = rt_now();
  add(part, last, now);
  last = now;
}

void accel_end_laps(void) {
  if (!active) return;
  double now = rt_now();
  add(PART_REST, last, now);
  add(PART_STEP, began, now);
  size_t of_step = 0;
  while (of_step < laps.count && laps.items[laps.count - 1 - of_step].step == step) of_step++;
  if (of_step > longest) longest = of_step;
  active = false;
}

void rt_laps_free(void) {
  free(laps.items);
  laps = (struct laps){0};
}
