/* precision.keep_in_fp32: which parameters are read in float32. */
#ifndef ACCEL_PLAN_GRAPH_KEEP_IN_FP32_H
#define ACCEL_PLAN_GRAPH_KEEP_IN_FP32_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* By region id and parameter: whether its names match precision.keep_in_fp32; NULL when the job names none. False with
 * errors at the job's lines: a name that matches nothing, and one that matches in some of the calls that run the same
 * code but not in all. */
bool parameters_in_fp32(struct program *program, struct diagnostics *diags, const bool ***in_fp32);

#endif
