/* Exposure: how long a step waits for its collectives, on a network. */
#ifndef ACCEL_PLAN_RANKS_EXPOSURE_H
#define ACCEL_PLAN_RANKS_EXPOSURE_H

#include "gen/plan/ranks/network.h"
#include "gen/program/program.h"

/* Of one collective in a step, all its times together. */
struct exposure {
  double seconds; /* that it takes */
  double waited;  /* of them, that the step waits for it */
};

/* By collective. A rank runs program->ranks.events, once for each micro-batch: the time of statements is in the ratio
 * of statement_time, and adds up to their fraction of network->step; a collective starts when the rank reaches it, or
 * when the one that it is chained to has ended, and has the link of its machine for itself, after those that started
 * before it; where the rank waits for one, the rest of its time is exposed. The rank waits at once for those that start
 * after the backward, and for all where network->step is 0. */
const struct exposure *exposures_of(const struct program *program, const struct network *network);

#endif
