/* Measure: the gradient of a step by the second reading, and how far float32 may be from it. */
#ifndef ACCEL_VERIFY_MEASURE_H
#define ACCEL_VERIFY_MEASURE_H

#include "gen/verify/native.h"
#include "gen/verify/rules/rules.h"
#include "gen/verify/tape/reading.h"

enum { MOST_TENSORS_OF_BATCH = 64 };

/* A tensor of a micro-batch, as the program loaded it. */
struct loaded {
  const char *name;
  int rank;
  int64_t dim[MOST_AXES];
  bool whole;
  double *values;
};

/* A micro-batch. */
struct micro_batch {
  struct loaded tensors[MOST_TENSORS_OF_BATCH];
  int count;
  int64_t number; /* among those of all ranks, which its random numbers follow from */
};

/* What is measured of a parameter or buffer. */
struct measured_tensor {
  struct stored *stored;
  double *gradient; /* [count], clipped */
  double *after;    /* of a buffer, [count]: what the step leaves */
  double spread;    /* the largest difference of an element of the noisy readings from the exact one */
};

/* Of a step. */
struct measured {
  struct measured_tensor *tensors; /* in the order of the reading's parameters */
  int count;
  double loss, loss_spread, norm, norm_spread;
  bool has_one; /* the step has several micro-batches, and one batch of all of them was read, too */
  double one;   /* the largest difference of its gradient from theirs, relative to the largest element */
};

/* How a step's gradient is computed. */
struct measuring {
  struct reading *reading;
  native_model *model;
  const struct job *job;
  const bool *frozen; /* by parameter: it is not trained */
  double unit;        /* the rounding of the numbers that the program computes a gradient with: 2^-24 */
  double roundings;   /* the noise of an operation, in such units */
  int readings;       /* that are noisy */
};

/* Runs the model once on a batch, for its parameters, and for the keys of its random numbers, which are in `arena`.
 * False: the reading refused. */
bool measure_parameters(struct measuring *how, struct arena *arena, const struct micro_batch *batch);

/* Measures the step of these micro-batches from the parameters as they are stored. False: the reading refused. */
bool measure_step(struct measuring *how, const struct micro_batch *batches, int count, bool with_one,
                  struct measured *measured);

/* Frees what it measured. */
void measured_free(struct measured *measured);

/* How far an element of a parameter's gradient may be from the measured one. */
double measured_bound(const struct measuring *how, const struct measured_tensor *tensor);

#endif
