/* Schedules: in which order the ranks along parallelism.pp take the micro-batches of a step through the stages.
 *
 * Stage s is of rank s % ranks, so that a rank has the stages rank, rank + ranks, ..., its chunks of the model
 * (Narayanan et al., arXiv:2104.04473, section 2.2). With one chunk a stage has the number of its rank.
 *
 * An order is a few loops, one after the other, the same on all ranks. An iteration runs a row of actions. The actions
 * of a kind are numbered over the step: schedule_work says of which of the rank's stages and of which micro-batch
 * action n is, and iteration i of a loop runs action i - shift. Bounds and shifts may depend on one number of each
 * rank, how many forwards it runs ahead of its backwards. So a program has the loops as text and these numbers as a
 * table, and decides nothing on the way.
 *
 * A new order has a function in gen/plan/ranks/pipeline_schedule.c that states its loops, and a new kind of action a
 * value of enum stage_action, its work, and a function of the program (templates/program/pipeline.c.j2). */
#ifndef ACCEL_PROGRAM_PIPELINE_SCHEDULE_H
#define ACCEL_PROGRAM_PIPELINE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* DEFERRED: gradients of weights that a backward has left (gen/plan/graph/defer.h). */
enum stage_action { ACTION_FORWARD, ACTION_BACKWARD, ACTION_DEFERRED, ACTIONS };

/* constant + ahead * schedule.ahead[rank] */
struct schedule_number {
  int64_t constant;
  int ahead;
};

struct schedule_loop {
  struct schedule_number first, end;
  struct {
    enum stage_action kind;
    struct schedule_number shift;
  } actions[ACTIONS];
  int n_actions;
  bool waits; /* an iteration ends when what it sends is received */
};

struct schedule {
  struct schedule_loop loops[5];
  int n_loops;
  int64_t ranks, chunks, micro_batches; /* along parallelism.pp; stages of a rank; of a step */
  int64_t *ahead;                       /* by rank */
  bool defers;                          /* gradients of weights are actions of their own */
  bool starts; /* a rank continues while its gradients are on their way, from memory of their own */
};

struct stage_work {
  int64_t stage, micro_batch;
};

/* Of a rank. */
int64_t schedule_number(const struct schedule *schedule, struct schedule_number number, int64_t rank);

/* What action n of a kind, from 0 to chunks * micro_batches - 1, is of. A rank's forwards take as many micro-batches as
 * there are ranks through a chunk, then through the next one; backwards begin with the last chunk. */
struct stage_work schedule_work(const struct schedule *schedule, enum stage_action kind, int64_t rank, int64_t n);

/* Calls visit for each action of a rank, in order. */
void schedule_follow(const struct schedule *schedule, int64_t rank,
                     void (*visit)(void *context, enum stage_action kind, struct stage_work work), void *context);

#endif
