/* Split: a region is shared by all its calls, some of which may name parameters that the job treats otherwise than
 * those of the others. Each treatment gets a region of its own, and a loop over layers becomes a loop for each run of
 * layers that are treated alike. */
#ifndef ACCEL_PLAN_GRAPH_SPLIT_H
#define ACCEL_PLAN_GRAPH_SPLIT_H

#include "gen/ir/graph.h"

/* What the job does with a parameter. */
struct treatment {
  char mark;   /* calls whose parameters have the same marks share a region */
  bool trains; /* a gradient is wanted */
};

struct splitting {
  void *context;
  /* Of a parameter of a region as the model made it, by its full name. */
  struct treatment (*treat)(void *context, const struct parameter *parameter, const char *name);
  /* Called for each node but calls, once it is at the end of its new region, with the marks of that region's
   * parameters; may put nodes after it, and returns the replacement of its first output. NULL: nothing is put there. */
  struct value *(*extend)(void *context, const struct node *node, const char *marks);
  /* Called for each new region with the same marks, before regions that are equal become one. NULL: it stays so. */
  void (*finish)(void *context, struct region *region, const char *marks);
};

/* Makes the graph's regions again, from its entry on. */
void split_regions(struct graph *graph, const struct splitting *splitting);

#endif
