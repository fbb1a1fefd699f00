/* Groups: a job's param_groups become spans of the weights, which the optimizer walks without asking for names. */
#ifndef ACCEL_PLAN_GROUPS_H
#define ACCEL_PLAN_GROUPS_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* Fills program->optimizer.parts, spans and tensors. False, with an error at the job's line, when a group is empty. */
bool plan_groups(struct program *program, struct diagnostics *diags);

#endif
