/* The layers of fully sharded data parallelism: arrays of weights of which a rank holds a few elements at a time, since
 * weights are gathered for one call and gradients are freed after it (Zhao et al., "PyTorch FSDP", VLDB 2023; ZeRO's
 * stages 2 and 3). A call of layers that run again together (memory.checkpoint_every) takes all of them. */
#ifndef ACCEL_PLAN_RANKS_FSDP_LAYERS_H
#define ACCEL_PLAN_RANKS_FSDP_LAYERS_H

#include "gen/program/program.h"

/* Units of such an array that have memory: the one in use, and the one that is gathered or reduced meanwhile. */
enum { FSDP_SLOTS = 2 };

/* Whether the functions and the parameters that the job names for fully sharded data parallelism are in the model.
 * False with an error at the first name that is not. After plan_trained. */
bool check_fsdp_names(const struct program *program, struct diagnostics *diags);

/* Where all layers share weights with others, a rank needs the whole of them, and the sum of their gradients, as long
 * as a step runs: holding one layer at a time would save nothing, and shards would come in addition. Then ranks divide
 * states alone: sets the placements of the mesh, adds a line to what is whole, and returns true. The gradients are then
 * planned anew. After plan_trained. */
bool keep_shared_layers_whole(struct program *program);

/* Finds the arrays whose elements are each the parameters of one iteration of one call, in the model and in its
 * backward, alone or with neighbours that are the same in both, and of nothing else; gives them slots, in the tree of
 * what the job divides, and fills program->ranks.fsdp_units. After plan_trained. False with an error at the job's key
 * when there is none. */
bool plan_fsdp_layers(struct program *program, struct diagnostics *diags);

/* The unit of a weight; -1: none. */
int fsdp_unit_of(const struct program *program, const struct weight *weight);

/* Gives the array whose element the path names memory for so many elements at a time, or for all where it has fewer. */
void layers_give_slots(struct weight_tree *tree, const char *path, int slots);

/* Gradients below the node do not begin at zero: those that do in slots are of the first layers there, and others have
 * the same memory. */
void layers_forget_zeros(struct program *program, const struct weight_node *node);

/* Of layers that come from elsewhere: weights in memory are where they are, and units after them. After weights_fold.
 */
void place_units(struct program *program);

/* Which unit each statement's iterations use, and when they begin to be made whole; after the buckets of gradients. */
void plan_gathers(struct program *program);

/* The same of each stage of a pipeline, whose forwards and backwards begin with the gather of their first unit: fills
 * program->ranks.pipeline.first_units and last_units. After the flat ranges are known. False with an error at the
 * schedule where what it defers needs weights. */
bool plan_stage_gathers(struct program *program, struct diagnostics *diags);

#endif
