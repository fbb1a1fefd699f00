#include "gen/plan/report/grid.h"

/* Ranks that are counted along an axis and along others, too, for each that is counted along it alone. */
static int64_t ranks_within(const struct program *program, enum axis axis) {
  int64_t ranks = 1;
  for (int other = 0; other < AXES; other++)
    if (program->mesh.axes[other].within == axis) ranks *= ranks_along(program, (enum axis)other);
  return ranks;
}

struct grid grid_of(const struct program *program) {
  struct grid grid = {.ranks = 1};
  for (int axis = 0; axis < AXES; axis++) {
    const int64_t together = ranks_within(program, (enum axis)axis);
    const struct grid_dim dim = {(enum axis)axis, ranks_along(program, (enum axis)axis) / together, together};
    if (dim.length > 1) grid.dims[grid.n_dims++] = dim;
    grid.ranks *= dim.length;
  }
  return grid;
}

int64_t grid_along(const struct program *program, int64_t rank, enum axis axis) {
  int64_t stride = 1;
  const bool is_within = program->mesh.axes[axis].within != AXES;
  for (int other = axis + 1; other < AXES; other++)
    if (is_within || program->mesh.axes[other].within == AXES) stride *= ranks_along(program, (enum axis)other);
  return rank / stride % ranks_along(program, axis);
}
