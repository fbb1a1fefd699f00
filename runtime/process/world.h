/* The processes of a run: started together, each with a rank. Which engine carries what they send each other is chosen
 * when a trainer is linked: world_self.c is one process alone, runtime/mpi is MPI. Both also define what
 * include/accel/collectives.h declares.
 *
 * What is here runs between steps and on a channel of its own, apart from the collectives of steps. All ranks call it
 * in the same order. */
#ifndef RUNTIME_PROCESS_WORLD_H
#define RUNTIME_PROCESS_WORLD_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

struct world {
  int rank, ranks;
  int local_rank, local_ranks; /* on this machine */
};

/* What carries what they send each other: "MPI"; "TCP", where processes meet by the variables of torchrun; "nothing" of
 * one alone. */
const char *rt_world_engine(void);

/* Joins the other processes, before anything else is done. */
void rt_world_join(void);

/* The same object at each call; one process alone before rt_world_join. */
const struct world *rt_world(void);

/* The ranks that a program is for. */
int64_t rt_mesh_ranks(const struct accel_program *program);

/* Ranks of it that train on batches of their own. */
int64_t rt_data_ranks(const struct accel_program *program);

/* Batches that they take together: a rank with several devices takes one for each. */
int64_t rt_data_batches(const struct accel_program *program);

/* Which of these this rank is, or trains on the batches of. */
int64_t rt_data_rank(const struct accel_program *program);

/* The ranks that differ along this axis alone; 1 where the mesh has no such axis. */
int rt_length_along(const struct accel_program *program, enum accel_axis axis);

/* Which of these this one is. */
int rt_rank_along(const struct accel_program *program, enum accel_axis axis);

/* By how much the numbers of neighbours along this axis differ: the last axis runs fastest, and ranks along cp and sp
 * are neighbours along dp_replicate or dp_shard, which counts them too. */
int rt_stride_along(const struct accel_program *program, enum accel_axis axis);

/* Whether the processes are as many as `program` was generated for; cuts them into the groups of its mesh. */
bool rt_world_divide(const struct accel_program *program, struct problem *problem);

/* Parts of the arena which nobody has touched yet: what others gather of this rank, at the same offsets on all; what
 * ranks add up. */
struct arena_parts {
  struct accel_byte_range gathered, summed;
};

/* The program's arena. Most of what collectives send is in it: ranks of a machine may exchange that more directly, and
 * its parts may become memory that they read. All ranks call it, after rt_world_divide. */
void rt_world_open_arena(void *arena, size_t bytes, const struct arena_parts *parts);

/* What this process has of its machine's processors. */
struct processors {
  int cores;         /* of its part; 0: it is alone with what its launcher left to it */
  char machine[400]; /* on local rank 0: what each rank of the machine is bound to; empty: none is */
};

/* This process's processors: processes of a machine that may run on the same ones divide them, by cores and
 * neighbouring nodes of memory; with `bind` each stays on its part. All ranks call it. */
bool rt_world_take_processors(bool bind, struct processors *taken, struct problem *problem);

/* The bytes of rank 0 become those of all. */
void rt_world_broadcast(void *bytes, size_t size);

/* The largest `value` of all ranks. */
int64_t rt_world_largest(int64_t value);

/* The `size` bytes at `own` of each rank, in order of the ranks, at `all`. */
void rt_world_gather(const void *own, void *all, size_t size);

/* The `size` bytes at `own` of rank `from` come to `there` of rank 0, call by call in their order. Other ranks return
 * immediately. */
void rt_world_bring(int from, const void *own, void *there, size_t size);

/* How many seconds a rank waits for others, from now on. */
void rt_world_wait_at_most(int seconds);

/* ---- For user code, on a channel of its own: a call that a rank leaves out meets no call of the run ----
 *
 * `what` names the call when others do not come to it. */

/* As rt_world_gather. */
void rt_user_gather(const void *own, void *all, size_t size, const char *what);

/* The bytes of rank `from` become those of all. */
void rt_user_broadcast(void *bytes, size_t size, int from, const char *what);

/* ---- The end ---- */

/* Leaves the others, at a good end. */
void rt_world_leave(void);

/* Ends all processes. This one ends with `status`. */
noreturn void rt_world_end(int status);

/* Waits to be ended by another rank, that has reported what is wrong; ends with `status` when none does. */
noreturn void rt_world_await_end(int status);

/* ---- On top of these ---- */

/* Goes on when all ranks are `good`. Else the first one that is not reports its problem, and all end with `status`. */
void rt_world_require(bool good, const struct problem *problem, int status);

/* Ends all over a problem that all ranks have: one reports it. */
noreturn void rt_fail_together(const struct problem *problem, int status);

/* Sets the number of threads: a core a thread, of what this process has of its machine, unless the job or whoever
 * started the processes says otherwise. All ranks call it, after rt_world_divide. What ranks of this machine are bound
 * to, which belongs to the process; empty: none is. */
const char *rt_world_set_threads(const struct accel_program *program);

/* Whether this process is the one that writes and reports. */
bool rt_is_main(void);

/* Whether it writes weights and checkpoints: the same one or, where each node has them, the first one of its machine.
 */
bool rt_writes_files(const struct accel_program *program);

#endif
