/* Part scopes: one function for each set of parameters. */
#ifndef ACCEL_PLAN_GRAPH_PART_SCOPES_H
#define ACCEL_PLAN_GRAPH_PART_SCOPES_H

#include "gen/program/program.h"

/* A function takes a pointer to the structure of the parameters below a scope, also of those that it leaves alone.
 * Where two calls of a region give it scopes below which the parameters differ, the region gets a copy for the second
 * of them. Iterations of one call stay together. */
void part_scopes(struct program *program);

#endif
