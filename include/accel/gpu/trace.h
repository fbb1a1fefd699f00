/* A profile on a GPU: what ran on the device in some steps, from CUPTI's records, as a table and as a trace. A program
 * that has none holds nothing of this, and is not linked with CUPTI. A step that is measured begins and ends with an
 * idle device; its graph is the same. */
#ifndef ACCEL_GPU_TRACE_H
#define ACCEL_GPU_TRACE_H

#include "device.h"

/* Measures the step that follows, of number `at`, where the job's schedule says so (accel_begin_profile_step). Waits
 * for the device then. */
void accel_gpu_begin_trace(struct accel_run *run, int64_t at);

/* What was put into streams since the part before, or since the step began, was this one of the program's parts, or,
 * with -1, none. With profile.with_flops: the work of a step that is measured is then not launched as a graph, so that
 * CUPTI can tell whose each kernel is; the kernels and their order are the same. */
void accel_gpu_profile_part(int part);

/* Ends a step. Waits for the device where it was measured. */
void accel_gpu_end_trace(void);

/* Prints the table of what ran, the longest first: times a step, milliseconds of one step, their fraction; with
 * profile.with_flops by the program's parts, with their GFLOP/s and GB/s. Writes profile_RANK.json in the job's folder
 * for traces, where it names one: steps, kernels, copies and fills by stream, as complete events of the Trace Event
 * Format (Google, "Trace Event Format", 2016), in microseconds. Rank 0 prints. Once, before accel_gpu_close. */
void accel_gpu_write_trace(const struct accel_run *run);

#endif
