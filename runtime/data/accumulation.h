/* Which micro-batches a step takes: a pure function of the step's number. Micro-batches are counted from the start of
 * the run; an epoch has as many as fit into it whole. */
#ifndef RUNTIME_DATA_ACCUMULATION_H
#define RUNTIME_DATA_ACCUMULATION_H

#include "include/accel/trainer.h"

/* How steps take them. */
struct accumulation {
  int64_t in_epoch; /* micro-batches of an epoch, at least 1 */
  int64_t in_step;  /* of a step, at least 1 */
  bool with_epochs; /* a step ends where an epoch does, with fewer micro-batches when no more are left of it */
};

/* What is due `parts` times in `steps` steps, each time after the step that ends the part; steps 0: never. */
struct cadence {
  int64_t steps, parts;
};

/* The micro-batches of step `at`, counted from 0. */
struct accel_micro_batches rt_accumulation_of(const struct accumulation *accumulation, int64_t at);

/* Steps that `micro_batches` of them make, the last one perhaps short. */
int64_t rt_accumulation_steps(const struct accumulation *accumulation, int64_t micro_batches);

/* So many epochs, or parts of one, in steps. */
struct cadence rt_accumulation_cadence(const struct accumulation *accumulation, struct accel_epochs epochs);

#endif
