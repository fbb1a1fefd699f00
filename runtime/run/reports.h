/* What a run reports of its steps. */
#ifndef RUNTIME_RUN_REPORTS_H
#define RUNTIME_RUN_REPORTS_H

#include "runtime/report/extras.h"
#include "runtime/report/log.h"
#include "runtime/report/stopwatch.h"
#include "runtime/tracking/trackers.h"

struct reports {
  struct log log;
  struct trackers trackers; /* to metrics.jsonl and the trackers; of the main process */
  struct stopwatch *watch;  /* apart, so that asking a const run what is next can start and stop it */
  struct extras extras;     /* what evaluations and user code add to the next line */
  int64_t eval_at;          /* the step count of the last evaluation; -1: none to report */
  double eval_loss;
  double stalled;      /* seconds that saves since the last line kept steps waiting */
  bool has_first_step; /* a line has reported how long it took to the end of the first step */
  bool skipped;        /* the newest step ended without its update */
};

struct accel_run;

/* Tokens of a step, or rows for tables; where steps end with epochs, in the mean over an epoch. */
double rt_units_per_step(const struct accel_run *run);

/* Lets a metric of an evaluation wait for the next line, as eval_NAME. */
void rt_report_metric(struct accel_run *run, const char *name, double value);

#endif
