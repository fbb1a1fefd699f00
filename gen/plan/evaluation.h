/* Evaluation: the model as it runs when nothing is learned: without the random operations of training. */
#ifndef ACCEL_PLAN_EVALUATION_H
#define ACCEL_PLAN_EVALUATION_H

#include "gen/ir/graph.h"

/* Adds to the graph a copy of the entry, and of what it calls, in which every random operation is its input. Returns
 * the copy of the entry; NULL when nothing in the graph is random, so that the entry itself serves. */
struct region *add_evaluation(struct graph *graph);

/* The same in place: for programs that never train. */
void drop_random(struct graph *graph);

#endif
