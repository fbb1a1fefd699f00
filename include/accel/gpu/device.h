/* A rank's GPU: what the host program of a CUDA trainer calls in addition to trainer.h. One process, one device, one
 * arena.
 *
 * No call here waits for the device unless its comment says so. Errors: every call of CUDA is checked; one that fails
 * ends all ranks with one message (rank, file and line, what was called, what it means, what to do). So an emitted
 * program checks nothing itself.
 *
 * The step of an emitted program is recorded once and replayed: addresses are fixed, and what changes from step to step
 * (samples, the rate, the number of the step) is read from device memory, to which the feed brings it. */
#ifndef ACCEL_GPU_DEVICE_H
#define ACCEL_GPU_DEVICE_H

#include "../trainer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A cudaStream_t: a queue of work, one piece after the other. */
typedef struct CUstream_st *accel_stream;

/* The streams of a program. TRAFFIC has the highest priority and carries collectives, FEED the samples,
 * PREFETCH weights that are on the host, READ those of files on their way there. */
enum accel_stream_name { ACCEL_COMPUTE, ACCEL_TRAFFIC, ACCEL_FEED, ACCEL_PREFETCH, ACCEL_READ, ACCEL_STREAMS };

/* What was decided at generation and the device must know. */
struct accel_gpu_plan {
  const char *const *architectures; /* the kernels' targets, "sm_80", "sm_90a"; NULL after the last */
  size_t arena_bytes; /* on the device; offset 0 to program->arena_bytes is what the host mirrors. The runtime's own
                         space for `ahead` feeds is added */
  size_t workspace_offset; /* in the arena: what the libraries work in, on the compute stream, from the first
                              multiple of 256 on */
  size_t workspace_bytes;
  size_t feed_offset;   /* in the arena: what the feed brings, samples and numbers of a micro-batch */
  size_t feed_bytes;    /* of one */
  size_t report_offset; /* in the arena: what a step leaves for the host */
  size_t report_bytes;  /* of one; 0: there are none */
  const struct accel_unused_range *unused; /* granules of the device's memory within one of them are not mapped */
  size_t n_unused;
  int ahead;            /* feeds, and reports, that may be under way: 2 or more */
  size_t staging_bytes; /* of the largest layer that comes from a file; 0: none do */
  int events;           /* numbers of events that the program uses: 0 … events - 1 */
  bool deterministic;   /* libraries choose algorithms whose results are the same in every run */
};

/* ---- Start and end ---- */

/* Takes the device (the one of this rank's position on its machine, or the only one that CUDA_VISIBLE_DEVICES leaves)
 * and makes arena, pinned memory, streams and events. After accel_start. Ends the process with one line when there is
 * no GPU, its driver is too old, no kernel is for its architecture, or its free memory is less than the plan's; the
 * line says what to do. */
void accel_gpu_open(const struct accel_program *program, const struct accel_gpu_plan *plan);

/* Waits for the device and gives everything back. Before accel_finish. */
void accel_gpu_close(void);

/* The arena: plan->arena_bytes on the device, zeroed, aligned to 2 MiB; granules of the device's memory that are within
 * what the rank does not use have none. The same pointer at each call. */
void *accel_gpu_arena(void);

/* Pins `bytes` of the host's arena, in which states are that the device does not mirror, as far as its end, and gives
 * their address on the device, whose kernels read and write them over the bus. Until accel_gpu_close; once. */
void *accel_gpu_pin(void *host, size_t bytes);

/* Begins to copy `bytes` from `from`, pinned memory of the host, in the prefetch stream, after what the compute stream
 * holds by now. 0 bytes: nothing begins. The next collective that starts waits for it, or: */
void accel_gpu_prefetch(void *to, const void *from, size_t bytes);

/* The same of the parameters whose offsets are from `first` on, of the files of the weights (reads.h), by way of pinned
 * memory of the runtime: bytes are at most plan->staging_bytes. A file that cannot be read, or that changes, ends the
 * process when it waits for the device. */
void accel_gpu_prefetch_read(void *to, size_t first, size_t bytes);

/* Makes the compute stream wait for all that is prefetched by now. */
void accel_gpu_wait_prefetch(void);

/* The stream of this name, which belongs to the runtime. From accel_gpu_open to accel_gpu_close. */
accel_stream accel_gpu_stream(enum accel_stream_name name);

/* ---- What outlives a step ---- */

/* Copies the program's states from the host's arena (accel_arena), which has the device's layout as far as they reach,
 * to the device's; those that are pinned stay where they are. After accel_fill_weights and accel_fill_averages. Waits.
 */
void accel_gpu_send_states(const struct accel_run *run);

/* Copies them back, after all work of the compute stream: before accel_handle_events when something is saved. Waits.
 */
void accel_gpu_fetch_states(const struct accel_run *run);

/* Copies `bytes` at `device`, of the arena, to `host`, after all work of the compute stream; but for what a stage of a
 * pipeline does not use, which has no memory there. Waits: for cadences, not for steps. */
void accel_gpu_read(void *host, const void *device, size_t bytes);

/* Copies `bytes` at `host` to `device`, of the arena, before all later work of the compute stream; but for the same.
 * Waits. */
void accel_gpu_write(void *device, const void *host, size_t bytes);

/* ---- Samples and numbers, host to device ---- */

/* Room for the next feed's plan->feed_bytes, in pinned memory, where they stay until `ahead` feeds later. Waits only
 * when so many are under way. */
void *accel_gpu_feed_begin(void);

/* The same for slot `slot` of those that are one after the other from feed_offset on, plan->feed_bytes each: of a stage
 * of a pipeline, which has several micro-batches at a time. */
void *accel_gpu_feed_begin_for(size_t slot);

/* Sends what was put there, on the feed's stream. */
void accel_gpu_feed_send(void);

/* Makes the compute stream wait for the oldest feed that was sent and moves it to its slot: at the arena's feed_offset
 * where it was begun for none. */
void accel_gpu_feed_take(void);

/* ---- What a step reports, device to host ---- */

/* After all work of the compute stream so far, copies the arena's report to the host. Once a step. */
void accel_gpu_report_send(void);

/* Logs the norms of parameters' gradients as accel_log_gradient_norms does, of `count` sums at `squares` on the device,
 * after all work of the compute stream. Waits. */
void accel_gpu_log_gradients(struct accel_run *run, const double *squares, size_t count, double scale);

/* The same for the noise scale, as accel_log_noise. `noise` is on the device. */
void accel_gpu_log_noise(struct accel_run *run, const float noise[2]);

/* The report that was sent `age` sends before the newest one: 0 the newest. age < ahead. Waits until it is there; NULL:
 * there were not that many. The bytes are the caller's until the next send. */
const void *accel_gpu_report(int age);

/* ---- Order between streams ---- */

/* Event number `event` happens once the work that `stream` holds by now is done. */
void accel_gpu_record(int event, accel_stream stream);

/* What is put into `stream` from now on waits for the event as it was recorded last. */
void accel_gpu_wait(accel_stream stream, int event);

/* Waits, on the host, until `stream` is empty. */
void accel_gpu_finish(accel_stream stream);

/* ---- Memory operations in a stream ---- */

/* Puts into `stream`: `bytes` at `device` become 0. */
void accel_gpu_zero(accel_stream stream, void *device, size_t bytes);

/* Puts into `stream`: `bytes` at `from` are copied to `to`, both on the device, without overlap. */
void accel_gpu_copy(accel_stream stream, void *to, const void *from, size_t bytes);

/* ---- Kernels ---- */

/* After a launch: ends the process when it was refused. accel_launch of launch.h calls it. */
void accel_gpu_launched(const char *kernel, const char *file, int line);

/* ---- Graphs ---- */

struct accel_graph;

/* Calls `record`, which puts work into the compute stream, and into others that wait for it and that it waits for, and
 * makes one graph of that: nothing runs yet. The name is static; profilers show it. With ACCEL_GRAPHS=no in the
 * environment the work is not recorded but put into the streams at each launch, for sanitizers and comparison.
 * Belongs to the runtime. */
struct accel_graph *accel_gpu_capture(const char *name, void (*record)(void));

/* Puts the graph's work into the compute stream. */
void accel_gpu_launch(const struct accel_graph *graph);

/* ---- Profile ---- */

/* A range of a timeline, of NVTX, as far as the work that is put into streams between the two. The name is static.
 * Emitted if the job has profile.nvtx. */
void accel_gpu_range_begin(const char *name);

/* Ends the range that was begun last. */
void accel_gpu_range_end(void);

#ifdef __cplusplus
}
#endif

#endif
