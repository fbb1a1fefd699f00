/* Predict: how long a step takes by what a table says of its kernels and of what stands around them. What the table
 * does not know is taken to run at the rates of what it knows: of operations where there are many to a byte, else of
 * bytes. */
#ifndef ACCEL_PLAN_PREDICT_H
#define ACCEL_PLAN_PREDICT_H

#include <jansson.h>

#include "gen/plan/program.h"

struct prediction {
  double seconds;            /* of a step of one process */
  double kernels, around;    /* of them: of kernels, of the rest */
  double estimated;          /* of them: of what was not measured */
  int n_kernels, n_measured; /* the program's kernels, and those that the table knows in their ways */
};

/* False where there is no table, or the program does not train. */
bool predict_step(const struct program *program, struct prediction *prediction);

/* The line of the plan, "" without a prediction; the same as an object {seconds, kernels, around, estimated, measured,
 * of}, NULL without one. */
const char *prediction_text(const struct program *program);
json_t *prediction_json(const struct program *program);

#endif
