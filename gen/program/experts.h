/* Weights of experts, in place of which each rank along an axis of the mesh has others (PLACED_EXPERT). */
#ifndef ACCEL_PROGRAM_EXPERTS_H
#define ACCEL_PROGRAM_EXPERTS_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* The name of what a rank has in place of a weight; the weight's own for rank 0, and of weights of no experts. */
const char *expert_name(struct arena *arena, const struct weight *weight, int64_t rank);

/* Which of some patterns a name matches; -1: none. */
typedef int pattern_of(const struct job *job, const char *name);

/* Whether all that ranks have in place of a weight matches the same pattern, for each weight. False with an error at
 * where(job, pattern) otherwise. */
bool check_expert_names(const struct program *program, pattern_of *matched,
                        struct location (*where)(const struct job *job, int pattern), struct diagnostics *diags);

#endif
