/* Stages: ranks along parallelism.pp divide the layers (Huang et al., "GPipe", arXiv:1811.06965). The loop over layers
 * becomes a loop for each stage, one after the other, so that a stage's part of the model is statements in a row. Which
 * statements these are is known once functions are laid out: gen/plan/ranks/pipeline.h. A rank has one stage, or with
 * parallelism.megatron.num_layers_per_virtual_pipeline_stage several of so many layers:
 * gen/program/pipeline_schedule.h. */
#ifndef ACCEL_PLAN_GRAPH_STAGES_H
#define ACCEL_PLAN_GRAPH_STAGES_H

#include "gen/program/program.h"

/* The stage whose layers a call of the forward runs; -1: it is not such a call. */
int stage_of_layers(const struct pipeline *pipeline, const struct node *call);

/* Divides the loop over layers of a program into a call for each stage, also in its second entry, and notes them in
 * program->ranks.pipeline: of an encoder and a decoder, which have a loop each, both loops. Nothing where
 * parallelism.pp is 1. Before gradients are made. False with an error at the key
 * where the model has no loop over layers, one of fewer layers than ranks, or buffers. */
bool divide_layers(struct program *program, struct diagnostics *diags);

#endif
