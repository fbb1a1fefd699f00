/* Tensor plan: parallelism.tp_plan, how ranks along tp lay parameters. */
#ifndef ACCEL_SPEC_TENSOR_PLAN_H
#define ACCEL_SPEC_TENSOR_PLAN_H

#include "gen/base/diag.h"
#include "gen/spec/job.h"
#include "gen/spec/node.h"

/* Reports a plan for ranks that are not there. */
void tensor_plan_check(const struct spec_node *job, struct diagnostics *diags);

/* Sets job->parallelism.tensor_rules, in `arena`. */
void tensor_plan_bind(struct arena *arena, struct job *job);

#endif
