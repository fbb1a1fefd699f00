/* Intervals: the time that each run of a part took, as accel_profile_part measures it, as a table for people and as a
 * trace for tools. */
#ifndef RUNTIME_REPORT_INTERVALS_H
#define RUNTIME_REPORT_INTERVALS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

#include <stdbool.h>
#include <stddef.h>

/* The list also holds, for each step, an interval of the whole step and one of the rest after its last part. */
enum { PART_STEP = -1, PART_REST = -2 };

struct interval {
  int part;
  int64_t step;
  double start, seconds; /* as rt_now */
};

struct intervals {
  struct interval *items;
  size_t count, capacity;
  bool lost; /* there was no memory for all */
};

/* What this process has measured so far. */
const struct intervals *rt_intervals(void);

/* Whether the schedule measures step `step` of this process, from 0. */
bool rt_is_measured(const struct accel_profile *profile, int64_t step);

/* Step `at` of the run, the one of this number of this process, begins: it is measured where the schedule says so. */
void rt_intervals_begin(const struct accel_profile *profile, int64_t at, int64_t number);

/* Prints the table of the parts, the longest first: times a step, milliseconds of one step, their fraction, and where
 * the job has profile.with_flops GFLOP/s and GB/s. Nothing when no step was measured. */
void rt_intervals_print(const struct accel_program *program);

/* Prints 10 columns of such a table: `work` a second in thousands of millions; blank where either is 0. */
void rt_print_rate(double work, double seconds);

/* Writes profile_RANK.json in the job's folder for traces: the measured steps and their parts as complete events
 * of the Trace Event Format (Google, "Trace Event Format", 2016), in microseconds. Nothing when the job names no
 * folder, or no step was measured so. */
bool rt_intervals_write(const struct accel_program *program, struct problem *problem);

void rt_intervals_free(void);

#endif
