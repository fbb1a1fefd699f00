/* Lower: from the first node of a region to the last, the steps that compute it; copies where nothing else helps. */
#ifndef ACCEL_PLAN_MEMORY_LOWER_H
#define ACCEL_PLAN_MEMORY_LOWER_H

#include "gen/plan/memory/layout_pass.h"

/* Fills the steps of the current function; every value of its region has a view then. */
void lower_nodes(struct layout_pass *pass);

#endif
