/* Results: what the functions of a program's step return. */
#ifndef ACCEL_PROGRAM_RESULTS_H
#define ACCEL_PROGRAM_RESULTS_H

#include "gen/program/program.h"

/* The values that the functions of a training step return: those of the forward, followed by the loss if the backward
 * computes it. */
struct value_list step_results(const struct program *program);

#endif
