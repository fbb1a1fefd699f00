/* The first and the last lines of a run: what it is, where its files lie, and what to type next. */
#ifndef RUNTIME_RUN_SIGNPOST_H
#define RUNTIME_RUN_SIGNPOST_H

#include "runtime/tracking/sink.h"

struct accel_run;

/* Prints the first lines: of the main process, once its files are open. */
void rt_signpost_begin(const struct accel_run *run);

/* Prints the last ones, after everything else. */
void rt_signpost_end(const struct accel_run *run, enum run_end end);

#endif
