/* Sending: what follows from how ranks exchange gradients. */
#ifndef ACCEL_PROGRAM_SENDING_H
#define ACCEL_PROGRAM_SENDING_H

#include "gen/program/program.h"

/* Whether a function of the backward, or one that it calls, completes buckets of gradients while it runs. */
bool function_sends(const struct function *function);

/* What its form that sends them is called: its own name where no micro-batch is without. */
const char *sending_name(const struct program *program, const struct function *function);

/* Elements of the memory of all gradients, padding included. */
int64_t all_gradients(const struct program *program);

/* Whether ranks of a machine read gradients of each other where these are in the arena, and copy none. */
bool sums_in_arena(const struct program *program);

/* Whether all ranks of each group along an axis are on one machine. */
bool is_within_machine(const struct job *job, enum axis axis);

/* Whether ranks along an axis add up gradients asynchronously, while the backward computes others: on a device that
 * gathers, and otherwise within a machine, whose ranks read them in place. */
bool tree_is_async(const struct program *program, enum axis axis);

#endif
