/* Names: every value of a region gets an identifier of C that no other value of it has. */
#ifndef ACCEL_IR_NAMES_H
#define ACCEL_IR_NAMES_H

#include "gen/ir/graph.h"

/* Names the inputs, parameters and results of a region: the model's variable where it is known, else the operation.
 * Values that were named before by name_values retain their names. */
void name_values(struct arena *arena, struct region *region);

/* Whether a name is what name_values gives a value without one: its operation's, as reshape_2, or that of the gradient
 * of such a value, d_reshape_2. */
bool is_operation_name(struct arena *arena, const char *name);

/* The first of `base`, base_2, base_3, … that is not taken: by the given function, which gets `context`. */
const char *free_name(struct arena *arena, const char *base, bool (*is_taken)(const void *context, const char *name),
                      const void *context);

/* `text` as an identifier of C: other characters become '_'; a leading digit gets one in front; keywords and
 * what may be a macro get one at the end. */
const char *identifier(struct arena *arena, const char *text);

#endif
