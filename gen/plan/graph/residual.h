/* Residual: between the matmuls that ranks divide, tensors are split over the positions of the sequence (Korthikanti
 * et al., arXiv:2205.05198, section 4.2.2). */
#ifndef ACCEL_PLAN_GRAPH_RESIDUAL_H
#define ACCEL_PLAN_GRAPH_RESIDUAL_H

#include "gen/plan/graph/placements.h"

/* What is split over positions, in addition to what the divided matmuls split. */
struct residual {
  struct placements *placements; /* of values as they are placed, which change */
  struct placement **nodes;      /* by node id: what a node that ranks divide needs and gives; NULL: they do not */
  struct placement **results;    /* by region id: how the region's results are placed */
  const struct node *uneven;     /* a matmul whose positions ranks cannot divide evenly; NULL: none */
};

/* Splits the sums of divided matmuls over their rows, and what follows from these as far as operations compute rows
 * alone: norms, dropout, sums with the residual, layers of a loop. Matmuls, and operations that mix positions, end the
 * split. `residual` has its first two members; the first gets the placements of more values, the second the nodes that
 * ranks now divide. False: `uneven` is set. */
bool split_residual(struct residual *residual);

#endif
