/* Packing: whether a model can take the positions of a window that data.packing gives it. */
#ifndef ACCEL_PLAN_GRAPH_PACKING_H
#define ACCEL_PLAN_GRAPH_PACKING_H

#include "gen/program/program.h"

/* False with an error when the model looks something up by positions that is shorter than a window. */
bool check_packing(const struct program *program, struct diagnostics *diags);

#endif
