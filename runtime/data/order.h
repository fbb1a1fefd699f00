/* Which sample of a file a position is: a pure function of (seed, split, position). A sample is a sequence of a token
 * file or a row of a table. */
#ifndef RUNTIME_DATA_ORDER_H
#define RUNTIME_DATA_ORDER_H

#include "include/accel/trainer.h"

#include <stdbool.h>
#include <stdint.h>

struct order {
  uint64_t seed;
  enum accel_split split;
  bool shuffle;
  int64_t first;   /* the split's first token or row in its file */
  int64_t samples; /* in an epoch */
  int64_t stride;  /* tokens between the starts of neighbouring sequences; 1 for rows */
  int64_t offsets; /* how many positions an epoch's first sequence can start at; 1: always at `first` */
  uint64_t stream; /* of the permutation of epoch 0; the later ones follow it */
};

/* The order of `count` tokens from `first`, in sequences of `length` tokens and the token after. No sequence fits:
 * samples is 0. */
struct order rt_order_of_sequences(uint64_t seed, enum accel_split split, bool shuffle, int64_t first, int64_t count,
                                   int64_t length);

/* The order of `count` rows from `first`. */
struct order rt_order_of_rows(uint64_t seed, enum accel_split split, bool shuffle, int64_t first, int64_t count);

/* Where the sample at `position` >= 0 begins in its file: a token or a row. samples >= 1. */
int64_t rt_order_start(const struct order *order, int64_t position);

/* Where sample `index` of an epoch begins when nothing is shuffled. */
int64_t rt_order_at(const struct order *order, uint64_t epoch, int64_t index);

/* The random stream of an epoch's permutation of a whole split. */
uint64_t rt_order_stream(enum accel_split split, uint64_t epoch);

#endif
