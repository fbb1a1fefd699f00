/* Targets: modules of a model that adapters are usually on. */
#ifndef ACCEL_COMMANDS_GENERATE_TARGETS_H
#define ACCEL_COMMANDS_GENERATE_TARGETS_H

#include "gen/base/arena.h"

/* The modules of an attention that PEFT adapts by default, as the model's C at `source` or a header next to
 * it calls them: "q_proj, v_proj".
 * NULL where it has none of these names. */
const char *usual_targets(struct arena *arena, const char *source);

#endif
