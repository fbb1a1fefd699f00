/* Fuse: chains of elementwise nodes over one shape become one node, so that memory is read and written once. */
#ifndef ACCEL_PLAN_GRAPH_FUSE_H
#define ACCEL_PLAN_GRAPH_FUSE_H

#include "gen/ir/op.h"

/* The kind of a fused node: its `body` holds the parts, its inputs are what they need from outside, its outputs what
 * others need of them. After the pass every elementwise node of the graph is part of one. */
extern const struct op_kind op_fused;

/* Rewrites every region. */
void fuse(struct graph *graph);

/* A fused node of the one elementwise node `part`, for passes that add nodes later. */
struct node *fuse_alone(struct graph *graph, struct node *part);

#endif
