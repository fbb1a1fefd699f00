/* Loop-carried values: an iteration passes on what the next one reads, so that a kernel at the end of one iteration and
 * a kernel at the beginning of the next can be fused. */
#ifndef ACCEL_PLAN_GRAPH_LOOP_CARRIED_H
#define ACCEL_PLAN_GRAPH_LOOP_CARRIED_H

#include "gen/ir/builder.h"

/* In all regions of a differentiated graph: if the iterations of a loop begin with a 16-bit copy of a loop-carried
 * value and end with a node that can write such a copy next to the value (the rule fuse_copy_after), the copy is
 * carried, too: each iteration makes it for the next one, and what precedes the loop makes it for the first. False if
 * there is none. */
bool carry_copies(struct graph *graph);

/* The same for residual streams: if iterations begin with a node that can add (the rule fuse_sum_before) and end with
 * the addition that makes the loop-carried value, the two operands of the addition are carried instead of the sum. The
 * first iteration adds zeros, and what follows the loop adds what the last iteration leaves. If the loop has a
 * backward, the saved row of the carried value also holds the operand that the backward reads, and an iteration saves
 * the sum, as it did the operand before. False if there is none. */
bool carry_residuals(struct builder *builder);

#endif
