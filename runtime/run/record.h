/* run.json of the project folder: what ran where, for tools that read a run (accel-gen report). */
#ifndef RUNTIME_RUN_RECORD_H
#define RUNTIME_RUN_RECORD_H

#include "runtime/base/problem.h"

struct accel_run;

/* Writes the file, by the main process, when a run begins or resumes:
 *
 *   {"generator": ..., "digest": ..., "fixed_digest": ..., "keys": {...},         the job, as a checkpoint's job.json
 *    "model": "nanogpt", "summary": "2 layers, ...", "plan": "model ...",         as the program states them
 *    "began": SECONDS, "first_step": N, "steps": N, "unit": "token" or "row", "units_per_step": N, "ranks": N,
 *    "threads": N, "arena_bytes": N, "device_bytes": N,
 *    "machine": {"system": ..., "machine": ..., "processor": ..., "logical_processors": N, "memory_bytes": N}} */
bool rt_record_write(const struct accel_run *run, struct problem *problem);

#endif
