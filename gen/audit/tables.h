/* Whether the tables that the runtime reads fit the arena. */
#ifndef ACCEL_AUDIT_TABLES_H
#define ACCEL_AUDIT_TABLES_H

#include "gen/audit/program/claim.h"

/* The claim tables-fit, of a program with a description for the runtime. */
void tables_check(struct audit *audit, const struct tree *tree);

#endif
