/* What an emitted program of kind "evaluate" calls, in addition to the data and the metrics of trainer.h: one process,
 * or the ranks that divide its tensors, measure a trained model. Errors as there. */
#ifndef ACCEL_EVALUATOR_H
#define ACCEL_EVALUATOR_H

#include "trainer.h"

/* Reads the flags (--help, --version, --weights FILE, --data FILE, --format text|json), opens and checks the evaluation
 * split, reserves the arena, sets the threads. */
struct accel_run *accel_evaluation_start(const struct accel_program *program, int argc, char **argv);

/* Reads the parameters from --weights, else from what a run has left in the project folder (its averages, where the
 * trainer evaluates those), else from the file that
 * the job starts from. */
void accel_evaluation_weights(struct accel_run *run, void *weights);

/* Prints the loss, the metrics that were reported, and of tokens the perplexity, e^loss; main's status. */
int accel_evaluation_finish(struct accel_run *run, double loss);

#endif
