/* Layers that stream: the device map has them elsewhere than in the memory of the device, to which they come before
 * each use. They are units as those of fully sharded data parallelism (fsdp_layers.h), which plans when they come. */
#ifndef ACCEL_PLAN_RANKS_STREAMED_LAYERS_H
#define ACCEL_PLAN_RANKS_STREAMED_LAYERS_H

#include "gen/program/program.h"

/* Finds these layers; gives them, but for what a trainer changes of them, slots after those of their array that stay
 * there, and fills program->ranks.fsdp_units, those that come from the host first. Does nothing where nothing streams.
 * False with an error where what is elsewhere is no such layer. After place_modules. */
bool plan_streamed_layers(struct program *program, struct diagnostics *diags);

#endif
