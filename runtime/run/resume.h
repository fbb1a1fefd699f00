/* Resuming from a checkpoint. */
#ifndef RUNTIME_RUN_RESUME_H
#define RUNTIME_RUN_RESUME_H

#include "runtime/base/problem.h"

struct accel_run;

struct resumption {
  const char *requested; /* as flags and job say: "auto", "never" or a folder */
  bool is_chosen;        /* `folder` is what the run resumes from */
  char folder[4096];     /* the checkpoint; empty: a fresh start */
  bool continues;        /* it was loaded */
  char changed[700];     /* what of the job is another since: "optimizer.lr: 0.001 -> 0.0005" */
};

/* Locks the project's folder, opens the run's saver and finds the checkpoint to resume from. Once it has, it does
 * nothing more. */
bool rt_resume_choose(struct accel_run *run, struct problem *problem);

/* Does the same, and then what was requested: fills the states, the first step, and the position of the samples. A
 * fresh start in a folder with the checkpoints of an earlier run is refused. */
bool rt_resume(struct accel_run *run, struct problem *problem);

/* Prints from where the run resumes. */
void rt_resume_report(const struct accel_run *run);

#endif
