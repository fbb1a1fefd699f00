/* Predict: how long a step takes by what a table says of its kernels and of the time between them. What the table does
 * not know is taken to run at the rates of what it knows: of operations where there are many to a byte, else of bytes.
 */
#ifndef ACCEL_PLAN_KERNELS_PREDICT_H
#define ACCEL_PLAN_KERNELS_PREDICT_H

#include <jansson.h>

#include "gen/program/program.h"

struct prediction {
  double seconds;            /* of a step of one process */
  double kernels, around;    /* of them: of kernels, of the rest */
  double matmuls;            /* of those of kernels: of matrix products and convolutions, by their fastest variants */
  double estimated;          /* of them: of what was not measured */
  int n_kernels, n_measured; /* the program's kernels, and those that the table knows in their variants */
};

/* False where there is no table, or the program does not train. */
bool predict_step(const struct program *program, struct prediction *prediction);

/* By kernel, what a run of it takes compared with others': seconds by the table, or, without one, by a machine that
 * does as many operations as make arithmetic bound a kernel while it moves a byte; and of a statement, with all that it
 * calls. */
const double *kernel_times(const struct program *program);
double statement_time(const struct program *program, const double *times, const struct step *step);

/* The fraction of a step's time that kernels take by the table; 1 without one. */
double kernel_fraction(const struct program *program);

/* The line of the plan, "" without a prediction; the same as an object {seconds, kernels, matmuls, around, estimated,
 * measured, of}, NULL without one. */
const char *prediction_text(const struct program *program);
json_t *prediction_json(const struct program *program);

#endif
