/* A profile: what the parts of a step take, measured in some steps of a run. A program that has none holds nothing of
 * this; one that has calls accel_profile_part after each part, which reads the clock. */
#ifndef ACCEL_PROFILE_H
#define ACCEL_PROFILE_H

#include "trainer.h"

/* Measures the step that follows, of number `at`, where the job's schedule says so: of the run's steps of this process
 * the first skip_first are passed over, then come cycles of `wait` and `warmup` steps that are not measured and
 * `active` ones that are (torch.profiler.schedule). */
void accel_begin_profile_step(struct accel_run *run, int64_t at);

/* The interval since the part before, or since the step began, was this one of the program's parts. */
void accel_profile_part(int part);

/* Ends a step. What ran after its last part was none of them. */
void accel_end_profile_step(void);

#endif
