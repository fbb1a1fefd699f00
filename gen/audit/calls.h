/* The call graph: who calls whom, what the step path is, and the claims that follow from names of functions alone. */
#ifndef ACCEL_AUDIT_CALLS_H
#define ACCEL_AUDIT_CALLS_H

#include "gen/audit/program/claim.h"

/* Finds the root and marks every function that it reaches (in_step_path), and what main reaches (is_used). Fills the
 * audit's root and counts. `root` is the name of the root; NULL: step, or else what the loops of main call, or of what
 * it calls. */
void calls_mark(struct audit *audit, const struct tree *tree, const char *root);

/* No recursion, no indirect call, no effect on the step path that a step does not need, only known externals. */
void calls_check(struct audit *audit, const struct tree *tree);

#endif
