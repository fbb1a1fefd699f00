/* Places modules: which memory each module of the model is in, as the job says (memory.device_map). */
#ifndef ACCEL_PLAN_MEMORY_PLACE_MODULES_H
#define ACCEL_PLAN_MEMORY_PLACE_MODULES_H

#include "gen/program/program.h"

/* Fills program->map where the job has a map, or `shown` asks for one, which is then DEVICE_MAP_AUTO. False with an
 * error where a module has no memory with space for it, or where the program cannot run what it has elsewhere than in
 * the memory of its device; `shown` leaves the latter out. After plan_weights. */
bool place_modules(struct program *program, bool shown, struct diagnostics *diags);

/* Whether the map may have layers elsewhere than in the memory of the device, which then stream. Before all passes. */
bool may_stream(const struct program *program);

#endif
