/* Positions: ranks along sp or cp divide the sequences of their samples. */
#ifndef ACCEL_PLAN_GRAPH_POSITIONS_H
#define ACCEL_PLAN_GRAPH_POSITIONS_H

#include "gen/program/program.h"

/* Makes the graph that of a rank along parallelism.sp or cp, or both, which has an equal part of the positions of each
 * sample; nothing where both are 1. What the entry takes is whole, and each rank takes its part of that. An operation
 * on each position alone has parts of its operands, by its own rule (op_place). Along sp a part is a range, and
 * attention has whole sequences of a part of its heads, by an all-to-all before and after it (Jacobs et al.,
 * arXiv:2309.14509). Along cp it is two chunks, as far from the start as from the end, and attention has its own
 * queries and all keys and values (Grattafiori et al., arXiv:2407.21783, section 3.3.2). With both, ranks along sp
 * divide what a rank along cp has, and exchange it before keys and values are gathered (Fang and Zhao,
 * arXiv:2405.07719, section 3). Products that mix positions, of which attention can be written, have heads along sp and
 * gather what they need whole along cp. The loss is a mean over a rank's own positions, and gradients of parameters are
 * those of these: what ranks have adds up as in data parallelism. Before gradients are made. False with an error where
 * the model has an operation that needs more than a rank's positions. */
bool divide_positions(struct program *program, struct builder *builder, struct diagnostics *diags);

#endif
