/* The clock by which everything of a run is timed. */
#ifndef RUNTIME_BASE_CLOCK_H
#define RUNTIME_BASE_CLOCK_H

/* Seconds on a clock that only moves forward. */
double rt_now(void);

/* When this process was started, on rt_now's clock, as far as the system knows; else now. */
double rt_process_start(void);

enum { RT_DATE_BYTES = 32 };

/* The date and the time of day now, in UTC: "2026-11-30 12:58:03 UTC". */
void rt_date_text(char text[RT_DATE_BYTES]);

#endif
