/* Weights: all parameters of a model as one tree of C structures. */
#ifndef ACCEL_PLAN_MEMORY_WEIGHTS_H
#define ACCEL_PLAN_MEMORY_WEIGHTS_H

#include "gen/program/program.h"

/* Fills root, structs and weights of the program from the calls of the entry. False with an error when functions are
 * called with scopes whose parameters differ in a way that one C structure cannot say. */
bool plan_weights(struct program *program, struct diagnostics *diags);

/* Lays the structures out anew, once arrays have got slots. Offsets of weights stay as they were. */
void weights_fold(struct program *program);

#endif
