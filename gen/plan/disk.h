/* Disk: the optimizer's states in a file, of which a few buckets at a time are in the arena (parallelism.offload).
 *
 * Where an update needs no more than a gradient, a bucket is updated within the backward, when its gradients are
 * complete and nothing reads its weights any more; else after the backward. */
#ifndef ACCEL_PLAN_DISK_H
#define ACCEL_PLAN_DISK_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* After the states are known: fills program->disk where the job has them on a disk. False, with an error at the job's
 * line, for an update that does not go through them element by element. */
bool plan_disk(struct program *program, struct diagnostics *diags);

/* After the alias pass: with updates within the backward, more slots in memory of gradients that neither activations
 * nor the backward use until then, so that the first buckets come during the forward. */
void plan_disk_ahead(struct program *program);

#endif
