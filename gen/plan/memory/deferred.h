/* Deferred: a backward function some of whose statements run later becomes two functions (gen/plan/graph/defer.h). */
#ifndef ACCEL_PLAN_MEMORY_DEFERRED_H
#define ACCEL_PLAN_MEMORY_DEFERRED_H

#include "gen/plan/memory/layout_pass.h"

/* Moves the deferred statements of the current function to a function of their own, function->deferred, with a call of
 * the deferred function of each callee that has one. What the first function makes and the second one reads is saved
 * with what the forward saves. Nothing where no statement is deferred. After the function's nodes are lowered. */
void split_deferred(struct layout_pass *pass);

/* Whether statements of a function read its input, or result, `index`. */
bool reads_operand(const struct function *function, enum storage_kind kind, int index);

#endif
