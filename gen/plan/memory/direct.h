/* Direct: from the last node of a region to the first, where each result is wanted, so that its producer writes there.
 */
#ifndef ACCEL_PLAN_MEMORY_DIRECT_H
#define ACCEL_PLAN_MEMORY_DIRECT_H

#include "gen/plan/memory/layout_pass.h"

/* Gives views to the values of the current region that can be written where a caller, a gradient, a concatenation, a
 * view or a repeated call wants them. The others stay without. */
void direct_values(struct layout_pass *pass);

#endif
