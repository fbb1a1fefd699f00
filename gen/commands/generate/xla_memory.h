/* What XLA says of a module: it is compiled by the plugin at hand. */
#ifndef ACCEL_COMMANDS_GENERATE_XLA_MEMORY_H
#define ACCEL_COMMANDS_GENERATE_XLA_MEMORY_H

#include "gen/base/arena.h"
#include "runtime/xla/xla.h"

/* The memory that the module takes on each of so many devices that run it together, and the plugin's platform, in
 * `arena`. False with a problem: there is no plugin, or it refuses the module. */
bool xla_memory_of(struct arena *arena, const char *kind, const char *module, int devices, struct xla_memory *memory,
                   const char **platform, struct problem *problem);

#endif
