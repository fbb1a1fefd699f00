/* The checkpoints of a run: what it saves, and when. */
#ifndef RUNTIME_RUN_SAVE_H
#define RUNTIME_RUN_SAVE_H

#include "runtime/checkpoint/saver.h"

struct accel_run;
struct json_t;

struct saves {
  struct saver saver;
  struct json_t *prints;  /* of the data, for checkpoints; on rank 0 */
  struct json_t *weights; /* prints of the files that layers stream from; NULL: none do */
  int64_t newest_step;    /* the step count of the last save; -1: none */
  double newest_time;     /* of the last save, or of the start */
  int64_t checked_at;     /* the step count for which the clock and the signals were checked; -1: none */
  bool is_timely;         /* and then a save is due by the clock */
  int signal;             /* and then this had come, which ends the run; 0: none had */
  bool interrupted;       /* it ended the run before its last step */
  int64_t mean_at;        /* the step count at which ranks that step alone averaged their weights last; -1: none */
};

/* What a save did, for the log's line. */
struct saved {
  const char *path; /* NULL: nothing is saved; else of the run */
  bool is_pending;  /* it is written in the background */
  double stall_s;   /* for which the steps waited */
};

/* Ends the process over a save that has failed, or warns, where the job continues over it. */
void rt_save_failed(struct accel_run *run, const struct problem *problem);

/* Makes whole on rank 0 what ranks divide of these states, for what reads it there next; all ranks come here. */
bool rt_save_collect(struct accel_run *run, enum state_set states, struct problem *problem);

/* Saves what is due once `at` steps are done: a checkpoint at the cadence in steps or minutes, at the end the weights
 * alone, too. Ends the process when a save has failed, unless the job continues over that. */
struct saved rt_save_due(struct accel_run *run, int64_t at, double lr);

/* Ends the run at `at` when a signal requested it: saves a checkpoint and says how to resume. */
void rt_end_on_signal(struct accel_run *run, int64_t at, double lr);

/* Waits for the last save; writes what the run leaves where that has not been done: of a run that had nothing left to
 * do, or whose last save failed. Ends the process when that fails. */
void rt_end_saves(struct accel_run *run);

#endif
