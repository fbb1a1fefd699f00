/* Stage times: when each rank of a pipeline runs which action of a step, if all stages take equally long. */
#ifndef ACCEL_PLAN_REPORT_STAGE_TIMES_H
#define ACCEL_PLAN_REPORT_STAGE_TIMES_H

#include "gen/base/arena.h"
#include "gen/program/pipeline_schedule.h"

/* "forward", "backward", "gradients of weights": of actions that are deferred. */
extern const char *const action_names[ACTIONS];

struct timed_action {
  enum stage_action kind;
  struct stage_work work;
  int64_t rank, start, end; /* in parts */
};

/* In parts of a step: a forward through a stage takes one, a backward two, or one where gradients of weights are
 * actions of their own, which take another. What is sent takes no time. */
struct stage_times {
  struct timed_action *actions; /* rank by rank, in the order in which it runs them */
  int64_t count, ranks, parts;  /* parts: of the step */
};

/* The actions of schedule_follow, each as soon as its rank and what it needs are done: a forward needs that of the
 * stage before, a backward that of the stage after. */
struct stage_times stage_times_of(struct arena *arena, const struct schedule *schedule);

#endif
