/* Gradients of parameters: which are stored, and the order in which they are written. */
#ifndef ACCEL_PLAN_MEMORY_GRADIENTS_H
#define ACCEL_PLAN_MEMORY_GRADIENTS_H

#include "gen/program/program.h"

/* Decides which parameters are updated within the backward, so that their gradients are not stored, and which gradients
 * are written and which are added: in the order of the backward run, the first contribution to
 * a parameter writes, unless the same code adds elsewhere; then all add and weight.zero requires zeros before. Where
 * micro-batches add up so (gradients_add_up), all add. Sets the accumulate flags of the graph's gradients. */
void plan_gradients(struct program *program);

/* Fills program->gradients and the offset of each weight's gradient, after plan_gradients. False with an error when
 * the layers of a loop are frozen in different parts. */
bool plan_trained(struct program *program, struct diagnostics *diags);

#endif
