/* Shards among the ranks along an axis. */
#ifndef RUNTIME_NCCL_SEAT_H
#define RUNTIME_NCCL_SEAT_H

#include "runtime/nccl/groups.h"

/* A rank among those along an axis, and how it is reached. */
struct seat {
  ncclComm_t comm;
  accel_stream stream;
  int ranks, index;
};

struct seat rt_nccl_seat_along(enum accel_axis axis, accel_stream stream);

/* Puts into the stream: values[ranks * shard_size], after which the last rank may have more, get each rank's `own`. */
void rt_nccl_gather(const struct seat *seat, const float *own, float *values, size_t shard_size, size_t last);

/* Records the event after which the sum that was started last has ended. */
void rt_nccl_record_sum(void);

#endif
