/* Sums: kernels that go through rows take up the addition in front of them and the one behind them, so that what is
 * added is read on the way: residual and norm forward, the norm's gradient and the residual's backward. */
#ifndef ACCEL_PLAN_GRAPH_SUMS_H
#define ACCEL_PLAN_GRAPH_SUMS_H

#include "gen/ir/builder.h"

/* In all regions of a differentiated graph, by what kinds say of themselves (op_kind.of_sum, plus, with_low): input 0
 * that is a sum of two like it is made there; what output 0 alone is added to is added there, and a copy in 16 bits of
 * that is written beside it; each also from one turn of a loop to the next (gen/plan/graph/carry.h). An addition that a
 * loop over elements would do on its way stays. */
void take_sums(struct builder *builder);

#endif
