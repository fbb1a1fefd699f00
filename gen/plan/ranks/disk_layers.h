/* Trained layers on a disk (parallelism.offload.param: nvme): their weights are in a file, and come to two slots before
 * each use; their gradients have one slot, from which the update within the backward takes them (gen/plan/disk.h). They
 * are units as those of fully sharded data parallelism (fsdp_layers.h), which plans when they come. */
#ifndef ACCEL_PLAN_RANKS_DISK_LAYERS_H
#define ACCEL_PLAN_RANKS_DISK_LAYERS_H

#include "gen/program/program.h"

/* Finds these layers, gives them slots among weights and gradients, and fills program->ranks.fsdp_units. Does nothing
 * where the job has its weights in memory. False, with an error at the job's line, for a job whose update needs
 * the whole gradient, or all weights, at a time. After plan_trained. */
bool plan_disk_layers(struct program *program, struct diagnostics *diags);

#endif
