/* Which process this is among those of a run, and what all of them wait for. A trainer starts and ends them; a program
 * of one's own calls accel_processes_start and accel_processes_end. Linked with accel-runtime it is one process alone,
 * which needs no MPI; with accel-runtime-mpi it is as many as mpirun starts. */
#ifndef ACCEL_PROCESS_H
#define ACCEL_PROCESS_H

#include <stdbool.h>

/* As Accelerate's PartialState has it. */
struct accel_process {
  int index, count;             /* on all machines: from 0 */
  int local_index, local_count; /* on this machine */
  bool is_main, is_local_main, is_last;
  /* "NO", of one process alone; "FSDP", where the ranks of a trainer divide weights or states; "MULTI_GPU" or
   * "MULTI_CPU" */
  const char *distributed_type;
  const char *device; /* "cpu", or "cuda" in a trainer for GPUs */
};

/* What is known of this process. The same object at each call, which belongs to the runtime. */
const struct accel_process *accel_process(void);

/* Joins the other processes, before anything else is done; one that does not come to a call that all make within
 * `timeout` seconds, 1 or more, ends all. Not in a trainer. */
void accel_processes_start(int timeout);

/* Leaves them, at a good end. Not in a trainer. */
void accel_processes_end(void);

/* Waits until every process has come here. All call it; one that is elsewhere in this interface ends all. */
void accel_wait_for_everyone(void);

/* ---- Who does something ----
 *
 *   if (accel_on_process(2)) write_something();
 *
 * True on the process that is named, and on one alone whatever is named, as Accelerate's decorators have it. */

/* Whether this is the main process. */
bool accel_on_main_process(void);

/* Whether this is the main process of its machine. */
bool accel_on_local_main_process(void);

/* Whether this is the last process. */
bool accel_on_last_process(void);

/* Whether this is process `index` of all. */
bool accel_on_process(int index);

/* Whether this is process `local_index` of its machine. */
bool accel_on_local_process(int local_index);

/* ---- Who goes first ----
 *
 *   ACCEL_MAIN_PROCESS_FIRST { make_the_cache(); }
 *
 * All run the block; the main process, or the main one of each machine, before the others. It is left at its end, not
 * by break, goto or return. */
#define ACCEL_MAIN_PROCESS_FIRST ACCEL_FIRST_(accel_process()->is_main)
#define ACCEL_LOCAL_MAIN_PROCESS_FIRST ACCEL_FIRST_(accel_process()->is_local_main)
#define ACCEL_FIRST_(first)                                                                                            \
  for (bool accel_inside_ = accel_enter_after(first); accel_inside_; accel_inside_ = accel_leave_before(first))

/* What these macros call before the block: waits for those that go first, where this one does not. Returns true. */
bool accel_enter_after(bool first);

/* What the macros call after the block: waits for those that come after. Returns false. */
bool accel_leave_before(bool first);

#endif
