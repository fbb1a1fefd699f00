/* Control groups: what limits this process and those with it. */
#ifndef ACCEL_BASE_CONTROL_GROUP_H
#define ACCEL_BASE_CONTROL_GROUP_H

#include "gen/base/arena.h"

/* The least number that a file such as memory.max has in the process's group and those above it; of a file with a
 * period (cpu.max), the part of it. controller, old_file: where groups of version 1 have it; NULL: they do not. 0: none
 * limits. */
double control_group_limit(struct arena *arena, const char *file, const char *controller, const char *old_file);

#endif
