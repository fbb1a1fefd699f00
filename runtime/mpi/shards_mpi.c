/* Collectives of shards, of which each rank has one. */
#include "include/accel/collectives.h"

#include "runtime/mpi/channel.h"
#include "runtime/mpi/in_flight.h"

static int ranks_along(enum accel_axis axis) {
  int ranks;
  MPI_Comm_size(rt_channel_along(axis), &ranks);
  return ranks;
}

static void begin_sum(enum accel_axis axis, const float *values, float *own, size_t shard_size, size_t last,
                      struct in_flight item) {
  MPI_Request request;
  item.shared = rt_shared_along(axis, SHARED_SUMS, values);
  if (item.shared != NULL) {
    item.number = rt_shared_begin(item.shared, (struct shared_item){.kind = SHARED_REDUCE_SCATTER,
                                                                    .values = (char *)(uintptr_t)values,
                                                                    .own = (char *)own,
                                                                    .shard_size = shard_size,
                                                                    .last = last});
    rt_in_flight_add(&rt_sums, MPI_REQUEST_NULL, item);
    return;
  }
  int *counts = rt_in_flight_counts(&rt_sums, ranks_along(axis), shard_size, last);
  rt_mpi_check(MPI_Ireduce_scatter(values, own, counts, MPI_FLOAT, MPI_SUM, rt_channel_along(axis), &request),
               rt_sums.what);
  rt_in_flight_add(&rt_sums, request, item);
}

void accel_start_reduce_scatter(enum accel_axis axis, const float *values, float *own, size_t shard_size, size_t last) {
  begin_sum(axis, values, own, shard_size, last, (struct in_flight){0});
}

static void add_arrived(const struct in_flight *item) {
  const float *arrived = item->arrived;
  for (size_t i = 0; i < item->count; i++) item->values[i] += arrived[i];
}

void accel_start_reduce_scatter_onto(enum accel_axis axis, const float *values, float *own, float *arriving,
                                     size_t shard_size, size_t last) {
  int along;
  MPI_Comm_rank(rt_channel_along(axis), &along);
  size_t count = along + 1 < ranks_along(axis) ? shard_size : last;
  begin_sum(axis, values, arriving, shard_size, last,
            (struct in_flight){.end = add_arrived, .values = own, .arrived = arriving, .count = count});
}

/* `own`: NULL: it is in its position among the values. */
static void begin_gather(enum accel_axis axis, const float *own, float *values, size_t shard_size, size_t last) {
  MPI_Request request;
  struct in_flight item = {.shared = rt_shared_along(axis, SHARED_GATHERS, values)};
  if (item.shared != NULL) {
    item.number = rt_shared_begin(item.shared, (struct shared_item){.kind = SHARED_ALL_GATHER,
                                                                    .values = (char *)values,
                                                                    .own = (char *)(uintptr_t)own,
                                                                    .shard_size = shard_size,
                                                                    .last = last});
    rt_in_flight_add(&rt_gathers, MPI_REQUEST_NULL, item);
    return;
  }
  int along, ranks = ranks_along(axis), *counts = rt_in_flight_counts(&rt_gathers, ranks, shard_size, last);
  MPI_Comm_rank(rt_channel_along(axis), &along);
  rt_mpi_check(MPI_Iallgatherv(own != NULL ? (const void *)own : MPI_IN_PLACE, counts[along], MPI_FLOAT, values, counts,
                               counts + ranks, MPI_FLOAT, rt_channel_along(axis), &request),
               rt_gathers.what);
  rt_in_flight_add(&rt_gathers, request, (struct in_flight){0});
}

void accel_start_all_gather(enum accel_axis axis, float *values, size_t shard_size, size_t last) {
  begin_gather(axis, NULL, values, shard_size, last);
}

void accel_start_all_gather_from(enum accel_axis axis, const float *own, float *values, size_t shard_size,
                                 size_t last) {
  begin_gather(axis, own, values, shard_size, last);
}
