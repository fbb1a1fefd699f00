/* Going on from a checkpoint. */
#ifndef RUNTIME_RUN_RESUME_H
#define RUNTIME_RUN_RESUME_H

#include "runtime/base/problem.h"
#include "runtime/run/run.h"

/* Locks the project's folder, opens the run's saver and finds the checkpoint to resume from, in run->resumed; empty: a
 * fresh start. Once it has, it does nothing more. */
bool rt_resume_choose(struct accel_run *run, struct problem *problem);

/* Does the same, and then what run->resume says: fills the states, the first step, and the position of the
 * samples. A fresh start beside the checkpoints of an earlier run is refused. */
bool rt_resume(struct accel_run *run, struct problem *problem);

/* Prints from where the run resumes, and that nothing is left to train where all its steps are done. */
void rt_resume_tell(const struct accel_run *run);

#endif
