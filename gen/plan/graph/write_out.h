/* Write out: operations that a device has no kernel of become others that compute the same. */
#ifndef ACCEL_PLAN_GRAPH_WRITE_OUT_H
#define ACCEL_PLAN_GRAPH_WRITE_OUT_H

#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* The passes that have run. */
enum write_out_moment { AS_READ, AFTER_POSITIONS, AFTER_DECODING };

/* Replaces the nodes of the graph whose kind the device lacks (target.kernels.lacks), but for those of a graph as it
 * was read that positions will replace; those that can be written out (op_kind.written_out) in a program that decodes
 * positions one by one; and, where nothing is left to decode, those that have no kernel outside of that
 * (op_kind.lacks_kernel). */
void write_out(struct program *program, struct builder *builder, enum write_out_moment moment);

#endif
