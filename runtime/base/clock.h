/* The clock by which everything of a run is timed. */
#ifndef RUNTIME_BASE_CLOCK_H
#define RUNTIME_BASE_CLOCK_H

/* Seconds on a clock that only moves forward. */
double rt_now(void);

/* When this process was started, on rt_now's clock, as far as the system knows; else now. */
double rt_process_start(void);

#endif
