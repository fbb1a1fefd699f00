/* The run: everything that accel_start made, in parts. Each part is in the header of the file that it belongs to,
 * next to the functions by which the other files of this folder use it. */
#ifndef RUNTIME_RUN_RUN_H
#define RUNTIME_RUN_RUN_H

#include "include/accel/trainer.h"
#include "runtime/process/arena.h"
#include "runtime/run/batches.h"
#include "runtime/run/cadences.h"
#include "runtime/run/leave.h"
#include "runtime/run/reports.h"
#include "runtime/run/resume.h"
#include "runtime/run/save.h"
#include "runtime/run/stopping.h"
#include "runtime/run/user.h"

struct accel_run {
  const struct accel_program *program;
  const char *command;      /* as it was called */
  const char *project_dir;  /* the flags' or the program's */
  const char *bound;        /* what the ranks of this machine are bound to; empty: none is */
  struct cadences cadences; /* user code, early stopping and signals bring the last step forward */
  int64_t first_step;       /* steps that were done before this process */
  struct arena arena;       /* the program's; states and weights are in it */
  struct input input;
  struct resumption resumption;
  struct saves saves;
  struct model model;
  struct early_stopping stopping;
  struct reports reports;
  struct user user;
};

#endif
