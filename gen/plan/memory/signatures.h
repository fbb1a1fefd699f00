/* Signatures: what each function takes. */
#ifndef ACCEL_PLAN_MEMORY_SIGNATURES_H
#define ACCEL_PLAN_MEMORY_SIGNATURES_H

#include "gen/program/program.h"

/* Fills uses_weights, uses_gradients and uses_inputs of every function: what its steps, or the functions that they
 * call, touch. */
void plan_signatures(struct program *program);

#endif
