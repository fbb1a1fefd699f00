/* The modules of StableHLO that a program holds, and has compiled when it starts: claims from their text. */
#ifndef ACCEL_AUDIT_MODULE_H
#define ACCEL_AUDIT_MODULE_H

#include "gen/audit/program/claim.h"
#include "gen/audit/program/options.h"

/* Adds the claims, where the program has modules. Files of these names next to the program are read: NAME.mlir of a
 * step, or of what a program that takes no steps runs; NAME.evaluation.mlir of a trainer's evaluation. */
void module_check(struct audit *audit, const struct tree *tree, const struct audit_options *options);

#endif
