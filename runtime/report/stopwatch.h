/* The time of steps, without what evaluation, saving and printing take. */
#ifndef RUNTIME_REPORT_STOPWATCH_H
#define RUNTIME_REPORT_STOPWATCH_H

#include <stdbool.h>
#include <stdint.h>

struct stopwatch {
  double pace;            /* seconds a step before the last reset; 0: not known */
  double process_start;   /* seconds; on the same clock as rt_now */
  double weights;         /* seconds that drawing or reading the weights took */
  double first_step_end;  /* 0: not yet */
  bool running;           /* steps are being computed */
  double started;         /* when they began */
  double seconds;         /* of steps since the last line */
  double waited;          /* seconds of these that steps took to get their batches */
  int64_t steps, last_at; /* in these seconds; the step count at the last stop */
};

/* Steps begin. */
void rt_stopwatch_start(struct stopwatch *watch);

/* Steps have ended; does nothing when stopped already. */
void rt_stopwatch_stop(struct stopwatch *watch);

/* `at` steps are done in all: the time since the start belongs to those since the last call. */
void rt_stopwatch_count(struct stopwatch *watch, int64_t at);

/* Seconds a step since the last reset; 0 when there was none. */
double rt_stopwatch_step(const struct stopwatch *watch);

/* Seconds a step, since the last reset or, when there was none, before it. */
double rt_stopwatch_pace(const struct stopwatch *watch);

/* The next line counts from zero. */
void rt_stopwatch_reset(struct stopwatch *watch);

#endif
