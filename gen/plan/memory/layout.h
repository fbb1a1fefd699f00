/* Layout: gives every value a view of memory and turns each region into a function of steps.
 *
 * Views cost nothing where strides can say them; a producer writes straight to where its result is wanted (a caller's
 * memory, a gradient, a part of a concatenation, a transposed layout); copies are put in only where neither works. */
#ifndef ACCEL_PLAN_MEMORY_LAYOUT_H
#define ACCEL_PLAN_MEMORY_LAYOUT_H

#include "gen/program/program.h"

/* Fills program->functions and program->views from program->graph. Gradients' accumulate flags are set. */
void layout(struct program *program);

/* The view of a value; its storage is NULL while it has none. */
struct view *view_of(struct program *program, const struct value *value);

/* The function that was made of a region; NULL while there is none. */
struct function *function_of(const struct program *program, const struct region *region);

/* Whether a view holds its value row-major without gaps. */
bool view_is_dense(const struct view *view, struct shape shape);

#endif
