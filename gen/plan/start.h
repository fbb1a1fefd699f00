/* Start: what the parameters of a program start from. */
#ifndef ACCEL_PLAN_START_H
#define ACCEL_PLAN_START_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* Marks the weights that are fresh: adapters', the states of layers in 8 bits, and those that model.fresh names. False
 * with an error at the job's line where a pattern of model.fresh is none, or matches no parameter. */
bool plan_start(struct program *program, struct diagnostics *diags);

#endif
