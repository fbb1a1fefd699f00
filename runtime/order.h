/* Which sample a position is: a pure function of (seed, split, position, ranks). A sample is a window of a token file
 * or a row of a table. */
#ifndef RUNTIME_ORDER_H
#define RUNTIME_ORDER_H

#include "dealing.h"
#include "trainer.h"

#include <stdbool.h>
#include <stdint.h>

struct order {
  uint64_t seed;
  enum accel_split split;
  bool shuffle;
  int64_t first;   /* the split's first token or row in its file */
  int64_t samples; /* in an epoch */
  struct dealing dealing;
  int64_t taken;   /* positions of an epoch: what is left out of one is another when shuffled */
  int64_t stride;  /* tokens between the starts of neighbouring windows; 1 for rows */
  int64_t offsets; /* how many places an epoch's first window can start at; 1: always at `first` */
};

/* The order of `count` tokens from `first`, in windows of `length` tokens and the token after. No window fits:
 * samples is 0. */
struct order rt_order_of_windows(uint64_t seed, enum accel_split split, bool shuffle, int64_t first, int64_t count,
                                 int64_t length);

/* The order of `count` rows from `first`. */
struct order rt_order_of_rows(uint64_t seed, enum accel_split split, bool shuffle, int64_t first, int64_t count);

/* Lets the epochs of training be dealt out so. Evaluation has no epochs. */
void rt_order_deal(struct order *order, struct dealing dealing);

/* Where the sample at `position` >= 0 begins in its file: a token or a row. taken >= 1. */
int64_t rt_order_start(const struct order *order, int64_t position);

/* Whether there is a sample at `position`: else rt_order_start gives another one, which is not to count. */
bool rt_order_counts(const struct order *order, int64_t position);

#endif
