/* What a run saves, and when. */
#ifndef RUNTIME_RUN_SAVE_H
#define RUNTIME_RUN_SAVE_H

#include "runtime/run/run.h"

/* What a save did, for the log's line. */
struct saved {
  const char *path; /* NULL: nothing is saved */
  bool is_pending;  /* it is written in the background */
  double stall_s;   /* for which the steps waited */
};

/* Ends the process over a save that has failed, or warns, where the job goes on over it. */
void rt_save_failed(struct accel_run *run, const struct problem *problem);

/* Makes whole on rank 0 what ranks divide of the first `n_states` states, for what reads it there next; all ranks come
 * here. */
bool rt_save_collect(struct accel_run *run, int n_states, struct problem *problem);

/* The parameters ("model") or what mirrors them under the names of a state file ("ema"), as the run leaves them; NULL
 * where it keeps no such thing. */
void *rt_mirror(const struct accel_run *run, const char *file);

/* Writes the parameters, or what mirrors them under the names of a state file ("model", "ema"), as `as`.safetensors, in
 * shards where it is too large for one, in the project folder. */
bool rt_save_mirror(const struct accel_run *run, const char *file, const char *as, struct problem *problem);

/* Writes what the run leaves beside its checkpoints: the parameters and what mirrors them, such as their averages, with
 * the best weights in the place of the last ones and adapters merged where the job says so. Ends the process when the
 * best weights cannot be had. */
bool rt_leave_weights(struct accel_run *run, struct problem *problem);

/* Saves what is due once `at` steps are done: a checkpoint at the cadence in steps or minutes, at the end the weights
 * alone, too. Ends the process when a save has failed, unless the job goes on over that. */
struct saved rt_save_due(struct accel_run *run, int64_t at, double lr);

/* Ends the run at `at` when a signal has asked for it: saves a checkpoint and tells how to go on. */
void rt_end_on_signal(struct accel_run *run, int64_t at, double lr);

/* Waits for the last save; writes what the run leaves where that has not been done: of a run that had nothing left to
 * do, or whose last save failed. Ends the process when that fails. */
void rt_end_saves(struct accel_run *run);

#endif
