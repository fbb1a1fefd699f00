/* Outline: the body of a loop becomes a function of its own, so that the loop can stay a loop. */
#ifndef ACCEL_IR_OUTLINE_H
#define ACCEL_IR_OUTLINE_H

#include "gen/ir/loops.h"

/* For each loop of a finished region whose iterations are the same nodes, but for values that come from outside and for
 * one number in the names of parameters: each iteration becomes one call of a new region. Bodies that are one call
 * already, and bodies without parameters, stay as they are. */
void outline_loops(struct graph *graph, struct region *region, const struct loop_list *loops);

#endif
