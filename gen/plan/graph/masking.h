/* Masking: whether the model has the tokens that masked language modelling puts in. */
#ifndef ACCEL_PLAN_GRAPH_MASKING_H
#define ACCEL_PLAN_GRAPH_MASKING_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* False after an error; after count_figures, which finds the vocabulary. */
bool check_masking(const struct program *program, struct diagnostics *diags);

#endif
