/* Alternatives: other values that a job's key could have, to see what a program owes to the one that it has. */
#ifndef ACCEL_SPEC_ALTERNATIVES_H
#define ACCEL_SPEC_ALTERNATIVES_H

#include "gen/spec/job.h"

/* Another value, and the override that sets it: where a key cannot be set on its own, as in a list of groups, that of
 * what holds it. */
struct job_alternative {
  const char *value; /* YAML text */
  struct job_override set;
  bool in_need; /* is useful only where the alternative before it is refused */
};

/* A key that has a value in the resolved job. */
struct job_choice {
  const char *key;   /* "optimizer.lr", "optimizer.param_groups.0.match" */
  const char *value; /* as YAML text */
  bool written;      /* in the job or on the command line; else it is the default */
  struct location where;
  struct job_alternative *alternatives; /* not all of them need to be good in this job */
  int n_alternatives, capacity;
};

/* All keys in the schema's order, in `arena`: all other words of an enumeration, the other truth, numbers that are
 * larger, smaller, one and none, lists with other items and without, other texts. */
struct job_choice *job_choices(struct arena *arena, const struct job *job, int *count);

#endif
