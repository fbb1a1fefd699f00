/* Write out: operations that a device has no kernel of become others that compute the same. */
#ifndef ACCEL_PLAN_GRAPH_WRITE_OUT_H
#define ACCEL_PLAN_GRAPH_WRITE_OUT_H

#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* Replaces the nodes of the graph, as the reader made it, whose kind the device lacks (target.kernels.lacks), and those
 * that can be written out (op_kind.written_out) in a program that decodes positions one by one. */
void write_out(struct program *program, struct builder *builder);

#endif
