/* Synchronize: what an operation computes of a batch, such as the statistics of batch normalisation, becomes that of
 * the batches of all ranks together (parallelism.sync_batch_norm). */
#ifndef ACCEL_PLAN_GRAPH_SYNCHRONIZE_H
#define ACCEL_PLAN_GRAPH_SYNCHRONIZE_H

#include "gen/program/program.h"

/* Lets nodes be of op_ranks.over_ranks where there is such a kind; nothing with one rank. After the copy of the model
 * that is evaluated, which looks at no batch. False with an error at the key where the model has no such node. */
bool synchronize(struct program *program, struct diagnostics *diags);

#endif
