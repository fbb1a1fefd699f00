/* At once: a loss over chunks of a product and its gradient become one node of the backward, so that each chunk is made
 * once, and no more than one is in memory. */
#ifndef ACCEL_PLAN_GRAPH_AT_ONCE_H
#define ACCEL_PLAN_GRAPH_AT_ONCE_H

#include "gen/plan/program.h"

/* Takes each node of the entry that has a kind for both (op_kind.at_once) together with its gradient, where this needs
 * nothing that comes of the loss. What the entry makes of such losses, the program's result with it, is made behind
 * them in the backward; program->loss_in_backward says so. The graph is differentiated. */
void take_at_once(struct program *program, struct builder *builder);

/* The values of the functions that a training step calls which they give it: of the forward's and, where the loss is
 * there, of the backward's region. The loss comes last where it is the backward's. */
struct value_list step_results(const struct program *program);

#endif
