/* Segments: splits a repeated call, so that its iterations can be treated differently. The random numbers of an
 * iteration stay the same. */
#ifndef ACCEL_PLAN_GRAPH_SEGMENTS_H
#define ACCEL_PLAN_GRAPH_SEGMENTS_H

#include "gen/ir/graph.h"

/* Lets `size` iterations at a time be one call of a new region, in which they follow each other, once for every whole
 * group and once for a shorter last one. The new regions, and the callee, are marked to be recomputed. size > 1. */
void group_iterations(struct graph *graph, struct node *node, int size);

/* Peels the first `count` iterations off: they become a call of their own. */
void peel_iterations(struct graph *graph, struct node *node, int count);

/* Lets the first `count` iterations, which may be all, call a copy of the callee that is marked to be recomputed:
 * *copy, which is made where that is NULL. */
void split_iterations(struct graph *graph, struct node *node, int count, struct region **copy);

#endif
