/* Groups: a job's param_groups become flat ranges of the weights, which the optimizer visits without looking up names.
 */
#ifndef ACCEL_PLAN_GROUPS_H
#define ACCEL_PLAN_GROUPS_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* Fills program->optimizer.parts, flat_ranges and tensors. False, with an error at the job's line, when a group is
 * empty. */
bool plan_groups(struct program *program, struct diagnostics *diags);

#endif
