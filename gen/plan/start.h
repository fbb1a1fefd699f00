/* Start: what the parameters of a program start from. */
#ifndef ACCEL_PLAN_START_H
#define ACCEL_PLAN_START_H

#include "gen/base/diag.h"
#include "gen/plan/program.h"

/* Whether the file of weights need not have the parameter of this name: an adapter's, or one that model.fresh names. */
bool is_fresh(const struct job *job, const char *name);

/* False with an error at the job's line where a pattern of model.fresh is none, or matches no parameter. */
bool check_start(const struct program *program, struct diagnostics *diags);

#endif
