/* Fuses the loss with its gradient: a loss over chunks of a matmul and its gradient become one node of the backward, so
 * that each chunk is computed once, and no more than one is in memory. */
#ifndef ACCEL_PLAN_GRAPH_FUSED_LOSS_BACKWARD_H
#define ACCEL_PLAN_GRAPH_FUSED_LOSS_BACKWARD_H

#include "gen/program/program.h"

/* Replaces each node of the entry that has a fused kind (REWRITE_LOSS_BACKWARD in rewrites.c), and its gradient, with
 * one node of that kind in the backward, if the gradient needs nothing that depends on the loss. What the entry
 * computes from such losses, the result of the program included, moves into the backward after them;
 * program->entry.loss_in_backward is then set. The graph is differentiated. */
void fuse_loss_backward(struct program *program, struct builder *builder);

#endif
