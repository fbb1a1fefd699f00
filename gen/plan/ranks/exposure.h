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

/* By collective. A rank goes through program->ranks.events, once for each micro-batch: statements take what
 * statement_paces says, and share what of network->step is their part; a collective begins when it is come to, or when
 * the one that it is chained to has ended, and has the link of its machine for itself, after what began before it;
 * where one is waited for that is not there, the rest of it is exposed. What begins after the backward is waited for
 * at once, and all is where network->step is 0. */
const struct exposure *exposures_of(const struct program *program, const struct network *network);

#endif
