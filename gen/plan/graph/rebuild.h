/* Rebuild: the nodes of a region again, as a rank has them that has parts of values along an axis of the mesh. */
#ifndef ACCEL_PLAN_GRAPH_REBUILD_H
#define ACCEL_PLAN_GRAPH_REBUILD_H

#include "gen/ir/builder.h"
#include "gen/program/program.h"

struct rebuild {
  struct program *program;
  struct builder *builder;
  struct value **replacements; /* by value id, of a value as the region had it: what a rank has instead; NULL: itself */
  void *context;
  /* What a node takes as its input `input`, made at the end of the current region. */
  struct value *(*take)(struct rebuild *rebuild, const struct node *node, int input);
  /* Appends a node that has its inputs, or what a rank does instead. */
  void (*append)(struct rebuild *rebuild, struct region *region, struct node *node);
  /* What the region gives as its result `result`. */
  struct value *(*give)(struct rebuild *rebuild, const struct region *region, int result);
};

/* Rebuilds a region by these functions; `replacements` is made. Values without a name get one. */
void rebuild_region(struct rebuild *rebuild, struct region *region);

/* What a rank has instead of a value of the region as it was. */
struct value *rebuild_stand(const struct rebuild *rebuild, struct value *value);

/* Makes a node that of one rank (op_shorten), whose own rule must find the shape that the placements give. */
void rebuild_shorten(const struct rebuild *rebuild, struct node *node, const struct placement *placements,
                     int64_t ranks, enum axis axis);

#endif
