/* Loops of the model that stay loops: iterations that are one call each become one call that is repeated. */
#ifndef ACCEL_IR_LOOPS_H
#define ACCEL_IR_LOOPS_H

#include "gen/ir/graph.h"

/* A loop of the model: iteration i made the nodes with ids from starts[i] up to starts[i + 1]. */
struct loop {
  int *starts;
  int count, capacity;
  int end;
};

struct loop_list {
  struct loop *items;
  int count, capacity;
};

/* Rolls each loop of a finished region: iterations in a row that are one call of the same callee, or can be outlined to
 * one, chained by all of its results, under scopes that differ in a number at most. The others stay the nodes that they
 * are, such as those of a first layer of other shapes. The list is in the order in which the loops began. */
void roll_loops(struct graph *graph, struct region *region, const struct loop_list *loops);

#endif
