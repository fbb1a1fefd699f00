/* What does not go with weights of 4 or 8 bits. */
#ifndef ACCEL_SPEC_QUANTIZE_H
#define ACCEL_SPEC_QUANTIZE_H

#include "gen/base/diag.h"
#include "gen/spec/node.h"

/* Checks a resolved job whose model.quantize is on; any other is right. */
void quantize_check(const struct spec_node *job, struct diagnostics *diags);

#endif
