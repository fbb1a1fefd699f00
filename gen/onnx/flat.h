/* Flat: a graph without its regions: each call is the nodes of what it calls. */
#ifndef ACCEL_ONNX_FLAT_H
#define ACCEL_ONNX_FLAT_H

#include "gen/ir/op.h"

/* A value of one call; those of parameters have the same number wherever they are used. */
struct flat_value {
  const struct value *value;
  const char *parameter; /* its full name; NULL: it is none */
};

struct flat_node {
  const struct node *node;
  int *inputs, *outputs; /* numbers of values */
  bool used;             /* the graph's results depend on it */
};

struct flat {
  struct arena *arena;
  struct {
    struct flat_value *items;
    int count, capacity;
  } values;
  struct {
    struct flat_node *items;
    int count, capacity;
  } nodes;
  struct {
    int *items;
    int count, capacity;
  } parameters; /* numbers of their values */
  int *inputs, *results;
  int n_inputs, n_results;
  int *current; /* the number of each value of the graph, by id, in the call that is being laid out */
};

/* Lays out the entry of a graph without backward regions. */
struct flat *flat_of(struct arena *arena, const struct graph *graph);

#endif
