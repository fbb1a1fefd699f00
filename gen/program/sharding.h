/* Sharding: what follows from splitting the optimizer's states among ranks, and with them gradients or weights. */
#ifndef ACCEL_PROGRAM_SHARDING_H
#define ACCEL_PROGRAM_SHARDING_H

#include "gen/program/program.h"

/* Shards are of so many elements, times something. */
enum { SHARD_LINE = 16 };

/* Whether ranks shard anything in this program: states, gradients or weights. */
bool is_sharded(const struct program *program);

/* Whether a rank has its shard of the gradients of all ranks in other memory than the gradients of its own batches.
 * Where gradients of its micro-batches add up in one order, each rank has all of them, and updates its part. */
bool shard_has_own_gradients(const struct program *program);

/* What the last rank has of a flat range; all others have range->shard_size. */
int64_t shard_last(const struct program *program, const struct flat_range *range);

/* What a rank has at most of a flat range in an array of a divided state: elements of it from *first on. */
int64_t shard_of_state(const struct program *program, const struct state *state, const struct flat_range *range,
                       int64_t *first);

/* Whether a rank's part of the gradients is added up over micro-batches, each of which sends it. */
bool shard_adds_up(const struct program *program);

/* Whether the received gradients of a micro-batch need memory of their own then. (A device adds what is there to what
 * it sends.) */
bool shard_needs_receive_buffer(const struct program *program);

/* Whether a step's last micro-batch sends more than those before it do, which send, too: a rank's part of the sum is
 * then added up over the ranks that have the same part. */
bool shard_sends_otherwise(const struct program *program);

/* Whether weights are split, too; they are then gathered before each use. */
bool weights_are_split(const struct program *program);

/* Whether weights of layers come before each use: from other ranks, or from the file that they are in. */
bool weights_come(const struct program *program);

/* Whether the gradients that micro-batches add to are split, too: each sends its own, as no rank has the memory for
 * all. In a tree a rank's own micro-batches add up first: with several, gradients are needed until the last one. */
bool gradients_are_split(const struct program *program);

/* Whether an evaluation within training is of averages of the weights that are split: they are then gathered in place
 * of the weights. */
bool evaluation_gathers_averages(const struct program *program);

/* Whether micro-batches add to the gradients of those before them on a rank. */
bool gradients_add_up(const struct program *program);

#endif
