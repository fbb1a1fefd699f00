/* What could hide something from a reader of the C: assembler, pragmas, attributes, macros, text left out. */
#ifndef ACCEL_AUDIT_TEXT_HIDDEN_H
#define ACCEL_AUDIT_TEXT_HIDDEN_H

#include "gen/audit/program/claim.h"

void hidden_check(struct audit *audit, const struct tree *tree);

#endif
