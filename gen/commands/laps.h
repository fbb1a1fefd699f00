/* Laps: what the profile of a run says of the parts of its steps. */
#ifndef ACCEL_COMMANDS_LAPS_H
#define ACCEL_COMMANDS_LAPS_H

#include <stdbool.h>

#include "gen/base/arena.h"

/* A part: how often a step runs it, and what all its runs in a step take, as the mean over the middle half of the steps
 * by their length: so parts add up to the step. */
struct lap_part {
  const char *name;
  double times, seconds;
};

struct laps {
  struct lap_part *items;
  int count, capacity;
  double step; /* the mean of these steps, in seconds */
  int n_steps;
};

/* Reads a trace (runtime/report/laps.h). False when it cannot be read or has no step. */
bool laps_read(struct arena *arena, const char *path, struct laps *laps);

/* A part by its name; NULL when no step ran it. */
const struct lap_part *laps_find(const struct laps *laps, const char *name);

/* The number below which a quarter of `count` numbers lie, which are sorted; between two of them by its distance from
 * either. 0 of none. */
double first_quartile(double *numbers, int count);

#endif
