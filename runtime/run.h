/* The run: everything that accel_start made. */
#ifndef RUNTIME_RUN_H
#define RUNTIME_RUN_H

#include "arena.h"
#include "data.h"
#include "events.h"
#include "extras.h"
#include "log.h"
#include "share.h"
#include "stopwatch.h"
#include "trainer.h"

struct accel_run {
  const struct accel_program *program;
  struct cadences cadences;
  const char *project_dir;
  char model_path[4096]; /* where weights are saved */
  struct arena arena;
  struct data data;
  struct sharing sharing;
  struct log log;
  struct stopwatch *watch; /* apart, so that asking a const run what is next can start and stop it */
  void *weights;           /* as remembered for saving; NULL: none yet */
  void *averages;          /* NULL: none are kept */
  int64_t saved_at;        /* the step count of the last save; -1: none */
  int64_t reported_at;     /* the last step count that was handled */
  int64_t eval_at;         /* the step count of the last evaluation; -1: none to tell */
  double eval_loss;
  struct extras extras;
  bool first_step_told;
  bool skipped; /* the newest step ended without its update */
};

#endif
