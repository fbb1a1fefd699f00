/* What functions, their forms for stages of a pipeline, and the calls of entry functions are made of. */
#ifndef ACCEL_EMIT_FUNCTIONS_H
#define ACCEL_EMIT_FUNCTIONS_H

#include "gen/emit/values.h"

/* The parameters of a function: [{kind, name, type, extent}]. */
struct jinja_value parameters_value(const struct program *program, const struct function *function);

/* Whether a function gets what an update needs of the step; a device may store that itself. */
bool takes_step_scalars(const struct program *program, const struct function *function);

/* A statement of `function`: a call of another function, or of a kernel. */
struct jinja_value call_value(const struct program *program, const struct function *function, const struct step *step);
struct jinja_value kernel_call_value(const struct program *program, const struct function *function,
                                     const struct step *step);

/* Sets whose a function is: the model's function, its file and line, and which of its forms it is. */
void set_heading(struct arena *arena, struct jinja_value value, const struct function *function);

/* The form of a function that has the statements of one stage alone. */
struct jinja_value stage_value(const struct program *program, const struct function *function, int stage);

/* Which member of the arena's scratch an entry function has. */
const char *scratch_member(const struct program *program, const struct function *function);

#endif
