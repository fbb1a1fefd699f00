/* Copy: regions of a graph made a second time. */
#ifndef ACCEL_IR_COPY_H
#define ACCEL_IR_COPY_H

#include "gen/ir/graph.h"

struct copying {
  struct graph *graph;
  struct region **callees; /* by id of a region: what calls of it call in the copies; NULL, or no list: itself */
  struct value **values;   /* by id: the copy of a value of an original; NULL, or no list: itself */
};

/* A copy of `from` that is named NAME_SUFFIX, at the end of the graph: inputs, parameters, nodes and results, with
 * what differentiate needs of them. */
struct region *copy_region(struct copying *copying, const struct region *from, const char *suffix);

/* Copies of the parameters of `from` in `to`. */
void copy_parameters(struct copying *copying, const struct region *from, struct region *to);

/* Copies of the nodes of `from` at the end of `to`, which uses the inputs and the parameters of `from` as they are. */
void copy_nodes(struct copying *copying, const struct region *from, struct region *to);

/* The copy of a value. */
struct value *copy_of(const struct copying *copying, struct value *value);

#endif
