/* Declarations of a program by kind, and the names that the linker sees. */
#ifndef ACCEL_AUDIT_TEXT_DECLARATIONS_H
#define ACCEL_AUDIT_TEXT_DECLARATIONS_H

#include "gen/audit/program/claim.h"

/* Findings for `hidden`, a claim about what the text says: declarations of another kind. And the claim main-alone. */
void declarations_check(struct audit *audit, struct claim *hidden, const struct tree *tree);

#endif
