/* Outline: the body of a loop becomes a function of its own, so that the loop can stay a loop. */
#ifndef ACCEL_IR_OUTLINE_H
#define ACCEL_IR_OUTLINE_H

#include "gen/ir/loops.h"

/* When the iterations of a loop of a finished region are the same nodes, but for values that come from outside and for
 * one number in the names of parameters: makes each iteration one call of a new region. A body that is one call
 * already, or one without parameters, stays as it is. */
void outline_loop(struct graph *graph, struct region *region, const struct loop *loop);

#endif
