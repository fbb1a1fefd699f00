/* Whether all compilers read the same program from a text. */
#ifndef ACCEL_AUDIT_TEXT_READING_H
#define ACCEL_AUDIT_TEXT_READING_H

#include "gen/audit/program/claim.h"

/* The claim one-reading. */
void reading_check(struct audit *audit, const struct tree *tree);

#endif
