/* Results: what the functions of a program's step return, and what they share with an evaluation. */
#ifndef ACCEL_PROGRAM_RESULTS_H
#define ACCEL_PROGRAM_RESULTS_H

#include "gen/program/program.h"

/* The values that the functions of a training step return: those of the forward, followed by the loss if the backward
 * computes it. */
struct value_list step_results(const struct program *program);

/* The shape of input `index` of the entry, in training or in evaluation, whichever is larger: both have the same
 * memory.
 */
struct shape largest_input(const struct program *program, int index);

/* Whether an evaluation works in the memory of what a step saves, and of its scratch: where it takes batches of another
 * size. Between steps nothing is saved; stages of a pipeline have different parts of that memory. */
bool evaluation_reuses_saved(const struct program *program);

#endif
