/* Border: what happens where one step ends and the next begins. The job decides all of it; a program holds what it
 * needs and nothing of the rest. */
#ifndef ACCEL_PLAN_BORDER_H
#define ACCEL_PLAN_BORDER_H

#include "gen/spec/job.h"

struct border {
  bool skips;  /* a step may end without its update, so steps are not what optimizer and schedule count */
  bool factor; /* the update multiplies gradients by a number that is known only now: of the clipping by norm */
};

struct border job_border(const struct job *job);

#endif
