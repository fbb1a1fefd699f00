/* Profile: how long the parts of a step take, from the trace of a run. */
#ifndef ACCEL_COMMANDS_TUNE_PROFILE_H
#define ACCEL_COMMANDS_TUNE_PROFILE_H

#include <stdbool.h>

#include "gen/base/arena.h"

/* A part: how often a step runs it, and what all its runs in a step take, as the mean over the middle half of the steps
 * by their length: so parts add up to the step. */
struct profile_part {
  const char *name;
  double times, seconds;
  double flops, bytes; /* of one run; 0: the trace does not say */
};

struct step_profile {
  struct profile_part *items;
  int count, capacity;
  double step; /* the mean of these steps, in seconds */
  int n_steps;
};

/* Reads a trace (runtime/report/intervals.h). False when it cannot be read or has no step. */
bool profile_read(struct arena *arena, const char *path, struct step_profile *profile);

/* A part by its name; NULL when no step ran it. */
const struct profile_part *profile_find(const struct step_profile *profile, const char *name);

/* The first quartile of `count` sorted numbers, interpolated between two of them. 0 of none. */
double first_quartile(double *numbers, int count);

#endif
