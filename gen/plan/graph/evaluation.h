/* Evaluation: the model as it runs when nothing is learned: what draws random numbers or looks at the batch in training
 * is something else there (op_evaluation.substitute). */
#ifndef ACCEL_PLAN_GRAPH_EVALUATION_H
#define ACCEL_PLAN_GRAPH_EVALUATION_H

#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* Gives the program a second entry: a copy of the entry, and of what it calls, in which such nodes are replaced. A
 * second result of the entry, logits, becomes one of the copy alone, as the classes that they predict: the program's
 * predictions. Nothing where the graph has neither, for then the entry itself serves. False with an error where there
 * are no classes for each label. */
bool add_evaluation(struct program *program, struct builder *builder, struct diagnostics *diags);

/* The same from the graph of the model with the batch of an evaluation: the second entry is its entry, with copies of
 * all that it calls. Parameters meet by their names. */
bool join_evaluation(struct program *program, const struct graph *evaluated, struct builder *builder,
                     struct diagnostics *diags);

/* Gives the program a second_entry that is the entry as it is evaluated, with copies of all that it calls. */
void part_evaluation(struct program *program, struct builder *builder);

/* Gives the program an evaluation_count where a batch's loss is a mean over what it counts, and the data can give it
 * more or fewer of that: a further result of what is evaluated. After plan_step_end, whose count serves if it is there.
 * False with an error where training.eval_iters is all and the loss is a sum over the samples of a batch, or of random
 * numbers, which would be others for each copy of a sample. */
bool plan_evaluation_mean(struct program *program, struct builder *builder, struct diagnostics *diags);

/* Makes the graph what it is in evaluation, in place, for programs that never train; a second result becomes classes as
 * above. False with an error where that fails, or where the model then still draws random numbers. */
bool become_evaluation(struct program *program, struct builder *builder, struct diagnostics *diags);

#endif
