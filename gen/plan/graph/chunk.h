/* Chunk: losses over the matmul that makes their input, a few rows at a time, so that the whole of it, such as the
 * logits of a large vocabulary, is never in memory. */
#ifndef ACCEL_PLAN_GRAPH_CHUNK_H
#define ACCEL_PLAN_GRAPH_CHUNK_H

#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* Rows that the job's memory.cross_entropy_chunk sets on its device: 0, all; CHUNK_AUTO; or a number. */
int64_t chunk_wanted(const struct job *job);

/* Takes each operation that can run over a matmul (op_fusion.over_matmul) together with the matmul whose result
 * nobody else uses, as the job's memory.cross_entropy_chunk says. A matmul that ends a called function moves to the
 * caller first. False with an error when the job gives a number of rows and there is nothing that could be taken
 * together. */
bool chunk_losses(struct program *program, struct builder *builder, struct diagnostics *diags);

#endif
