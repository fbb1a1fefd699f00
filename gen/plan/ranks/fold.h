/* Fold: arrays of layers of which ranks hold a few elements at a time, as weights come together for one call and
 * gradients leave behind it (Zhao et al., "PyTorch FSDP", VLDB 2023; ZeRO's stages 2 and 3). */
#ifndef ACCEL_PLAN_RANKS_FOLD_H
#define ACCEL_PLAN_RANKS_FOLD_H

#include "gen/plan/program.h"

/* Elements of such an array that have room: the one in use, and the one that comes or leaves meanwhile. */
enum { FOLD_SLOTS = 2 };

/* Finds the arrays whose elements are each the parameters of one iteration of one call, in the model and in its
 * backward, and of nothing else; gives them slots, in the tree of what the job divides, and fills program->units. After
 * plan_trained. False with an error at the job's key when there is none. */
bool fold(struct program *program, struct diagnostics *diags);

/* The unit of a weight; -1: none. */
int unit_of(const struct program *program, const struct weight *weight);

/* Which unit each statement's iterations use, and when they begin to be made whole; after the buckets of gradients. */
void plan_gathers(struct program *program);

#endif
