/* Groups: a job's param_groups become spans of the weights, which the optimizer walks without asking for names. */
#ifndef ACCEL_PLAN_GROUPS_H
#define ACCEL_PLAN_GROUPS_H

#include "gen/base/diag.h"
#include "gen/plan/program.h"

/* Fills program->parts, spans and tensors. False, with an error at the job's line, when a group is empty. */
bool plan_groups(struct program *program, struct diagnostics *diags);

/* Whether two parameters are updated by the same numbers. */
bool same_numbers(const struct optimizer_numbers *a, const struct optimizer_numbers *b);

/* Whether two parameters are updated by the same numbers. */
bool same_numbers(const struct optimizer_numbers *a, const struct optimizer_numbers *b);

#endif
