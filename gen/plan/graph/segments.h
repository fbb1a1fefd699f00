/* Segments: a repeated call taken apart, so that its iterations can be treated unlike. The random numbers of an
 * iteration stay what they were. */
#ifndef ACCEL_PLAN_GRAPH_SEGMENTS_H
#define ACCEL_PLAN_GRAPH_SEGMENTS_H

#include "gen/ir/graph.h"

/* Lets `size` iterations at a time be one call of a new region, in which they follow each other, once for every whole
 * group and once for a shorter last one. The new regions, and the callee, are marked to be recomputed. size > 1. */
void group_iterations(struct graph *graph, struct node *node, int size);

/* Lets the first `count` iterations be a call of their own. */
void part_iterations(struct graph *graph, struct node *node, int count);

/* Lets the first `count` iterations call a copy of the callee that is marked to be recomputed. */
void split_iterations(struct graph *graph, struct node *node, int count);

#endif
