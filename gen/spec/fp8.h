/* Training in 8 bits: what a job may combine with it. */
#ifndef ACCEL_SPEC_FP8_H
#define ACCEL_SPEC_FP8_H

#include "gen/base/diag.h"
#include "gen/spec/node.h"

/* Checks a resolved job with precision.mixed_precision: fp8; any other is right. */
void fp8_check(const struct spec_node *job, struct diagnostics *diags);

#endif
