/* Disk: the optimizer's states in a file, of which two buckets at a time are in the arena (parallelism.offload). */
#ifndef ACCEL_PLAN_DISK_H
#define ACCEL_PLAN_DISK_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* After the states are known: fills program->disk where the job has them on a disk. False, with an error at the job's
 * line, for an update that does not go through them element by element. */
bool plan_disk(struct program *program, struct diagnostics *diags);

#endif
