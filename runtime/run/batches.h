/* What a run trains on, and which of it a step takes. */
#ifndef RUNTIME_RUN_BATCHES_H
#define RUNTIME_RUN_BATCHES_H

#include "runtime/data/accumulation.h"
#include "runtime/data/data.h"
#include "runtime/data/prefetch.h"

struct accel_run;

struct input {
  struct data data;
  struct prefetch prefetch;
  struct accumulation accumulation;
};

/* Opens and checks the data of the run's program; `train_path` replaces its training path unless NULL. */
bool rt_input_open(struct accel_run *run, const char *train_path, struct problem *problem);

/* Begins to read ahead of the run's first step. */
bool rt_input_start(struct accel_run *run, struct problem *problem);

/* Moves the first sample of the run's first step at sample `index` of an epoch, where an earlier run was: with other
 * batches or other data, samples continue there. */
void rt_input_continue(struct accel_run *run, int64_t epoch, int64_t index);

/* The position in its epoch of the first sample after `at` steps, those of all ranks counted. */
struct input_position {
  int64_t epoch, index;
};
struct input_position rt_input_position(const struct accel_run *run, int64_t at);

/* Ends reading ahead, and closes the data. */
void rt_input_close(struct accel_run *run);

#endif
