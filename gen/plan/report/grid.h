/* Grid: where the ranks of a program are along the axes of its mesh. */
#ifndef ACCEL_PLAN_REPORT_GRID_H
#define ACCEL_PLAN_REPORT_GRID_H

#include "gen/program/program.h"

/* A dimension of the grid. Ranks along some axes are counted along another one, too: these are dimensions within it,
 * and a step along it is a step over all of them. */
struct grid_dim {
  enum axis axis;
  int64_t length;   /* of the dimension */
  int64_t together; /* numbers of its axis that a place along it has */
};

struct grid {
  struct grid_dim dims[AXES]; /* outermost first: ranks along the last one are neighbours; those of several places */
  int n_dims;
  int64_t ranks;
};

struct grid grid_of(const struct program *program);

/* The number of a rank along an axis of several ranks, as the runtime has it. */
int64_t grid_along(const struct program *program, int64_t rank, enum axis axis);

#endif
