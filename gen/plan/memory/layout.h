/* Layout: gives every value a place in memory and turns each region into a function of steps.
 *
 * Views cost nothing where strides can say them; a producer writes straight to where its result is wanted (a caller's
 * memory, a gradient, a part of a concatenation, a transposed layout); copies are put in only where neither works. */
#ifndef ACCEL_PLAN_MEMORY_LAYOUT_H
#define ACCEL_PLAN_MEMORY_LAYOUT_H

#include "gen/program/program.h"

/* Fills program->functions and program->places from program->graph. Gradients' accumulate flags are set. */
void layout(struct program *program);

/* The place of a value; its storage is NULL while it has none. */
struct place *place_of(struct program *program, const struct value *value);

/* The function that was made of a region; NULL while there is none. */
struct function *function_of(const struct program *program, const struct region *region);

/* Whether a place holds its value row-major without gaps. */
bool place_is_dense(const struct place *place, struct shape shape);

#endif
