/* accel/order.h: what the function of hooks.on_order gets (accel/hooks.h). */
#ifndef ACCEL_ORDER_H
#define ACCEL_ORDER_H

#include <stdint.h>

/* An epoch of training, for on_order to fill. The samples to train on are numbered from 0 in the order of their files,
 * without those that are held out for evaluation. */
struct accel_order {
  int64_t epoch;    /* from 0 */
  int64_t records;  /* how many samples there are to train on */
  uint64_t seed;    /* data.data_seed */
  int64_t count;    /* how many of them the epoch takes: data.epoch_samples, or as many as there are */
  int64_t *samples; /* count numbers to fill, from 0 to records - 1 */
};

#endif
