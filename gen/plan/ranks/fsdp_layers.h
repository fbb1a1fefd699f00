/* The layers of fully sharded data parallelism: arrays of weights of which a rank holds a few elements at a time, since
 * weights are gathered for one call and gradients are freed after it (Zhao et al., "PyTorch FSDP", VLDB 2023; ZeRO's
 * stages 2 and 3). */
#ifndef ACCEL_PLAN_RANKS_FSDP_LAYERS_H
#define ACCEL_PLAN_RANKS_FSDP_LAYERS_H

#include "gen/program/program.h"

/* Elements of such an array that have memory: the one in use, and the one that is gathered or reduced meanwhile. */
enum { FSDP_SLOTS = 2 };

/* Finds the arrays whose elements are each the parameters of one iteration of one call, in the model and in its
 * backward, and of nothing else; gives them slots, in the tree of what the job divides, and fills
 * program->ranks.fsdp_units. After plan_trained. False with an error at the job's key when there is none. */
bool plan_fsdp_layers(struct program *program, struct diagnostics *diags);

/* The unit of a weight; -1: none. */
int fsdp_unit_of(const struct program *program, const struct weight *weight);

/* Which unit each statement's iterations use, and when they begin to be made whole; after the buckets of gradients. */
void plan_gathers(struct program *program);

/* The same of each stage of a pipeline, whose forwards and backwards begin with the gather of their first unit: fills
 * program->ranks.pipeline.first_units and last_units. After the flat ranges are known. False with an error at the
 * schedule where what it defers needs weights. */
bool plan_stage_gathers(struct program *program, struct diagnostics *diags);

#endif
