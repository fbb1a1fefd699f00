/* Weights of experts, of which each rank along an axis of the mesh has its own (PLACED_EXPERT). */
#ifndef ACCEL_PROGRAM_EXPERTS_H
#define ACCEL_PROGRAM_EXPERTS_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* The name of a rank's weight at the position of rank 0's; the weight's own name where it belongs to no expert. */
const char *expert_name(struct arena *arena, const struct weight *weight, int64_t rank);

/* Which of some patterns a name matches; -1: none. */
typedef int pattern_of(const struct job *job, const char *name);

/* Whether the weights of all ranks at one position match the same pattern, for each weight. False with an error at
 * where(job, pattern) otherwise. */
bool check_expert_names(const struct program *program, pattern_of *matched,
                        struct location (*where)(const struct job *job, int pattern), struct diagnostics *diags);

#endif
