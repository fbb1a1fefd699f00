/* Whether main takes the steps that the claims are about. */
#ifndef ACCEL_AUDIT_TAKING_H
#define ACCEL_AUDIT_TAKING_H

#include "gen/audit/program/claim.h"

/* Findings for step-path-found: `entry`, main, or what it calls under no condition, has one loop that calls `step` in
 * every iteration; of a program of the runtime's, an
 * argument that is a number is the loop's counter. */
void taking_check(struct audit *audit, struct claim *claim, struct function *entry, const struct function *step);

#endif
