/* How long the collectives of a step take on a network, by the alpha-beta model (Hockney 1994): a message of n bytes
 * takes latency + n / bandwidth, and all ranks of a group wait for what is sent between two of its machines. */
#ifndef ACCEL_PLAN_RANKS_COST_H
#define ACCEL_PLAN_RANKS_COST_H

#include <jansson.h>

#include "gen/plan/ranks/exposure.h"
#include "gen/plan/ranks/network.h"
#include "gen/program/program.h"

/* How MPI does a collective (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in
 * MPICH", 2005). Of p ranks and n bytes, with L = log2 p rounded up: */
enum cost_method {
  METHOD_NONE,        /* one rank */
  METHOD_DOUBLING,    /* recursive doubling: L messages of n */
  METHOD_HALVING,     /* Rabenseifner: 2 L messages, of n / 2, n / 4, ... and back */
  METHOD_RING,        /* 2 (p - 1) messages of n / p */
  METHOD_TREE_LINEAR, /* to one rank by a tree, L messages of n, then from it p - 1 of n / p at a time */
  METHOD_LINEAR,      /* p - 1 messages of n / p at a time */
  METHOD_MESSAGE      /* one message of n */
};

/* What the model says of one time of a collective. */
struct cost {
  enum cost_method method;
  double seconds;
};
struct cost collective_cost(const struct program *program, const struct collective *collective,
                            const struct network *network);

/* What it says of a step, the exposures of all. */
struct step_cost {
  double communication; /* seconds of all collectives, one after the other */
  double exposed;       /* of them, that a step waits for; with network.step == 0: all */
};
struct step_cost step_cost(const struct program *program, const struct exposure *exposures);

/* The lines of the plan, and the same as an object: {latency, bandwidth, step, communication, exposed, collectives:
 * [{method, seconds, exposed}]}, in seconds: of one time of it, and of all that a step waits for it. */
const char *cost_text(const struct program *program, const struct network *network);
json_t *cost_json(const struct program *program, const struct network *network);

#endif
