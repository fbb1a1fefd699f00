/* Evaluation: the model as it runs when nothing is learned: without the random operations of training. */
#ifndef ACCEL_PLAN_EVALUATION_H
#define ACCEL_PLAN_EVALUATION_H

#include "gen/ir/builder.h"
#include "gen/plan/program.h"

/* Gives the program an evaluation_entry: a copy of the entry, and of what it calls, in which every random operation is
 * its input. A second result of the entry, logits, becomes one of the copy alone, as the classes that they speak for:
 * the program's predictions. Nothing where the graph has neither, for then the entry itself serves. False with an error
 * where there are no classes for each label. */
bool add_evaluation(struct program *program, struct builder *builder, struct diagnostics *diags);

/* Drops the random operations in place: for programs that never train. */
void drop_random(struct graph *graph);

#endif
