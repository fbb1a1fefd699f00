/* What a run leaves in addition to its checkpoints: its weights, and what mirrors them. */
#ifndef RUNTIME_RUN_LEAVE_H
#define RUNTIME_RUN_LEAVE_H

#include "runtime/base/problem.h"
#include "runtime/run/folder.h"

struct accel_run;

struct model {
  void *weights;        /* that steps train, in the arena, as remembered for saving; NULL: none yet */
  void *published;      /* the model, where that is not the weights: the program's, or a rank's part; NULL: it is */
  void *whole;          /* of which ranks have parts, as rank 0 has collected it; NULL: it has not */
  char path[4096];      /* where it is left */
  bool is_left;         /* it is written, with all that the run leaves */
  struct folder folder; /* of Hugging Face that the project folder becomes */
};

/* The state that is the parameters ("model") or mirrors them ("ema"), by its file; -1: there is none. */
int rt_mirror_state(const struct accel_program *program, const char *file);

/* The parameters ("model") or what mirrors them under the names of a state file ("ema"), as the run leaves them; NULL
 * where it keeps no such thing. They belong to the program. */
void *rt_mirror(const struct accel_run *run, const char *file);

/* Whether ranks have parts of the model, where that is not the weights; of anything that the run leaves. */
bool rt_publishes_parts(const struct accel_run *run);
bool rt_leaves_parts(const struct accel_run *run);

/* Collects the model that is not the weights on rank 0, where ranks have parts of it. All ranks call it. False with a
 * problem: there is no memory for it. */
bool rt_model_collect(struct accel_run *run, struct problem *problem);

/* Writes the parameters, or what mirrors them under the names of a state file ("model", "ema"), as `as`.safetensors, in
 * shards where it is too large for one, in the project folder. */
bool rt_save_mirror(const struct accel_run *run, const char *file, const char *as, struct problem *problem);

/* Writes what the run leaves: the parameters and what mirrors them, such as their averages, with the best weights in
 * the last ones and adapters merged where the job says so. Ends the process when the best weights cannot
 * be had. */
bool rt_leave_weights(struct accel_run *run, struct problem *problem);

#endif
