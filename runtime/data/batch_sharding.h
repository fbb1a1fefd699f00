/* How the samples of an epoch are distributed to the ranks in batches: a pure function of a position, by the rules of
 * Accelerate's BatchSamplerShard and DataLoaderDispatcher (accelerate/data_loader.py, 1.15).
 *
 * A round is one batch of every rank, and an epoch is a number of whole rounds. A position counts through the rounds of
 * all epochs: in a round the first rank's batch, then the second's. What does not fill the last round decides what it
 * holds: nothing (it is left out), the epoch's first samples once more, or positions without a sample. */
#ifndef RUNTIME_DATA_BATCH_SHARDING_H
#define RUNTIME_DATA_BATCH_SHARDING_H

#include <stdbool.h>
#include <stdint.h>

/* A process among those that train on batches of their own. */
struct data_rank {
  int64_t rank, size; /* 0 <= rank < size */
};

struct batch_sharding {
  int64_t batch;      /* samples of one rank's batch, at least 1 */
  int64_t ranks;      /* batches of a round, at least 1: one of each rank, or several */
  bool keeps_last;    /* drop_last is false: the last round is there even when samples do not fill it */
  bool even;          /* even_batches: several ranks start with the epoch's samples again to fill it */
  bool dispatches;    /* dispatch_batches: every rank gets an equal part of it, so that all their batches are short */
  bool uneven_inputs; /* join_uneven_inputs: a rank without samples in it gets the epoch's first ones, and knows */
};

/* Positions of an epoch of `samples` samples: whole rounds. */
int64_t rt_batch_sharding_positions(const struct batch_sharding *sharding, int64_t samples);

/* The first position of a rank's batch `number`, counted from the first epoch's start; the batch's other positions
 * follow it. */
int64_t rt_batch_sharding_first(const struct batch_sharding *sharding, int64_t number, int64_t rank);

/* The sample at a position of an epoch, 0 <= position < rt_batch_sharding_positions, counted in the epoch's own order.
 * At a position without one it is some other sample, and *counts is false. */
int64_t rt_batch_sharding_sample(const struct batch_sharding *sharding, int64_t samples, int64_t position,
                                 bool *counts);

/* How many ranks have samples of their own in round `number`, counted from the first epoch's start. */
int64_t rt_batch_sharding_ranks(const struct batch_sharding *sharding, int64_t samples, int64_t number);

#endif
