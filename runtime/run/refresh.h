/* The host's copy of what outlives a step, for user code between steps. Where steps are a device's, the runtime of that
 * (runtime/cuda) stands for refresh.c. */
#ifndef RUNTIME_RUN_REFRESH_H
#define RUNTIME_RUN_REFRESH_H

#include "runtime/run/run.h"

/* Makes `bytes` at `at` what the newest step left there. Nothing where `at` lies outside of the program's arena, or is
 * its only place. */
void rt_refresh(const struct accel_run *run, void *at, size_t bytes);

#endif
