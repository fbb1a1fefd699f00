/* Weights: all parameters of a model as one tree of C structures. */
#ifndef ACCEL_PLAN_MEMORY_WEIGHTS_H
#define ACCEL_PLAN_MEMORY_WEIGHTS_H

#include "gen/program/program.h"

/* The tree of all parameters of a program, or of all whose gradient is stored, from the calls of the entry. NULL with
 * errors when functions are called with scopes whose parameters differ in a way that one C structure cannot say. */
struct weight_tree *plan_weights(struct program *program, bool of_gradients, struct diagnostics *diags);

/* Lays the structures out again, once arrays have got slots. Offsets of weights stay as they were. */
void weights_fold(struct weight_tree *tree);

#endif
