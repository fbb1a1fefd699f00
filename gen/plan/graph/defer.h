/* Defer: splits a backward in two, for parallelism.pp_schedule: zero_bubble (Qi et al., "Zero Bubble Pipeline
 * Parallelism", arXiv:2401.10241). The stage before waits for the gradient of what a stage received (B); gradients of
 * parameters (W) nobody waits for, and they are computed where the stage would wait. */
#ifndef ACCEL_PLAN_GRAPH_DEFER_H
#define ACCEL_PLAN_GRAPH_DEFER_H

#include "gen/program/program.h"

/* Sets node.deferred of each node of a backward region on which none of the region's results depends, nor layers of the
 * pipeline that it runs: what is left are gradients of parameters. A kernel that makes gradients of both is not
 * deferred. A call is deferred if it has no results, so that all that it runs may run later; of another one, what is
 * deferred in its callee runs later. Nothing under another schedule. After nodes are fused. */
void defer_weight_gradients(struct program *program);

#endif
