/* The stream of a run's events, and the trackers that it feeds: metrics.jsonl and those that the program names. It
 * belongs to the main process; all functions may be called on a stream that was never opened, and do nothing then. */
#ifndef RUNTIME_TRACKING_TRACKERS_H
#define RUNTIME_TRACKING_TRACKERS_H

#include "runtime/tracking/sink.h"

enum { MOST_TRACKERS = 1 + sizeof((struct accel_tracking *)0)->sinks / sizeof(struct accel_sink *) };

struct tracker {
  const struct accel_sink *sink;
  void *state;
};

struct trackers {
  struct tracked tracked;
  struct tracker items[MOST_TRACKERS]; /* metrics.jsonl first */
  int count;
  double flushed, took; /* rt_now when all that waited was written; the seconds that this took */
  struct scalars scalars;
};

/* Opens the files of all trackers. keep: the step that the run resumes from, after which nothing stays; -1: the run
 * begins, and replaces what another one left at the same names. */
bool rt_trackers_open(struct trackers *trackers, const struct accel_program *program, const char *project_dir,
                      int64_t keep, struct problem *problem);

/* Adds an event. metrics.jsonl has it at once, the files of tools when that takes no more than a hundredth of
 * the time, before a checkpoint and at the end. What cannot be written waits for the next call. */
bool rt_trackers_figures(struct trackers *trackers, const struct figures *figures, struct problem *problem);
bool rt_trackers_text(struct trackers *trackers, int64_t step, const char *name, const char *text,
                      struct problem *problem);
bool rt_trackers_histogram(struct trackers *trackers, int64_t step, const char *name, const float *values, size_t count,
                           struct problem *problem);
bool rt_trackers_picture(struct trackers *trackers, int64_t step, const char *name, struct picture picture,
                         struct problem *problem);

/* Prints the newest figures as metrics.jsonl has them. */
void rt_trackers_print(const struct trackers *trackers, int64_t step, FILE *out);

/* Writes all that waits. */
bool rt_trackers_flush(struct trackers *trackers, struct problem *problem);

/* The last event: how the run ended. */
bool rt_trackers_close(struct trackers *trackers, enum run_end end, struct problem *problem);

/* The same of a run that an error ends. metrics.jsonl, which a checkpoint may wait for, stays open. What cannot be
 * written is left out. */
void rt_trackers_fail(struct trackers *trackers);

/* metrics.jsonl: its path, and the descriptor that a checkpoint waits for. */
const char *rt_trackers_metrics(const struct trackers *trackers);
int rt_trackers_metrics_file(const struct trackers *trackers);

#endif
