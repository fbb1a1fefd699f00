/* Carry: what a loop's turns hand on is what the next turn takes, so that a kernel at the end of one and a kernel at
 * the beginning of the other can be one. */
#ifndef ACCEL_PLAN_GRAPH_CARRY_H
#define ACCEL_PLAN_GRAPH_CARRY_H

#include "gen/ir/builder.h"

/* In all regions of a differentiated graph: where turns of a loop begin with a copy in 16 bits of a carried value, and
 * end with a node that can write such a copy beside that value (op_kind.with_low), the copy is carried, too: a turn
 * makes it for the next one, and what stands before the loop for the first. False where there is none such. */
bool carry_copies(struct graph *graph);

/* The same where turns begin with a node that can add (op_kind.of_sum) and end with the addition that makes the carried
 * value: its two operands are carried in its place. The first turn adds zeros, and what stands behind the loop adds
 * what the last one leaves. Where a backward goes over the loop, the row of what is carried also keeps the operand that
 * this reads, and a turn keeps the sum, as it did the operand before. */
bool carry_sums(struct builder *builder);

#endif
