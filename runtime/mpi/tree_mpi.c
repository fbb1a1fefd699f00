/* Sums over ranks in the order of a tree, over MPI. */
#include "include/accel/collectives.h"
#include "runtime/mpi/channel.h"
#include "runtime/mpi/in_flight.h"

#include <string.h>

static const char what[] = "the sum of gradients in order";

/* MPI counts in int. */
enum { MOST_AT_ONCE = 1 << 28, LEVELS = 32, MOST_DOUBLES = 16 };

struct range {
  size_t first, count;
};

/* Gives floats to a partner and takes as many as that one gives. */
static void exchange(MPI_Comm channel, int partner, const float *give, size_t n_given, float *take, size_t n_taken) {
  for (size_t at = 0; at < n_given || at < n_taken; at += MOST_AT_ONCE) {
    MPI_Request requests[2];
    size_t out = at < n_given ? n_given - at : 0, in = at < n_taken ? n_taken - at : 0;
    int n_out = out < MOST_AT_ONCE ? (int)out : MOST_AT_ONCE, n_in = in < MOST_AT_ONCE ? (int)in : MOST_AT_ONCE;
    rt_mpi_check(MPI_Irecv(take + at, n_in, MPI_FLOAT, partner, 0, channel, &requests[0]), what);
    rt_mpi_check(MPI_Isend(give + at, n_out, MPI_FLOAT, partner, 0, channel, &requests[1]), what);
    for (int i = 0; i < 2; i++) rt_mpi_wait(&requests[i], what);
  }
}

/* The half of a range that a rank keeps, with this bit of its number; the other one is its partner's. */
static struct range half_of(struct range all, bool upper) {
  size_t lower = all.count / 2;
  return upper ? (struct range){all.first + lower, all.count - lower} : (struct range){all.first, lower};
}

void accel_all_reduce_by_tree(enum accel_axis axis, float *values, size_t count, float *workspace) {
  MPI_Comm channel = rt_channel_along(axis);
  struct range kept[LEVELS] = {{0, count}}, given[LEVELS];
  int rank, ranks, level = 0;
  MPI_Comm_rank(channel, &rank);
  MPI_Comm_size(channel, &ranks);
  for (int distance = ranks / 2; distance > 0; distance /= 2, level++) {
    bool upper = (rank & distance) != 0;
    const struct range own = half_of(kept[level], upper), other = half_of(kept[level], !upper);
    exchange(channel, rank ^ distance, values + other.first, other.count, workspace, own.count);
    for (size_t i = 0; i < own.count; i++) values[own.first + i] += workspace[i];
    kept[level + 1] = own;
    given[level] = other;
  }
  for (int distance = 1; distance < ranks; distance *= 2) {
    level--;
    const struct range own = kept[level + 1], other = given[level];
    exchange(channel, rank ^ distance, values + own.first, own.count, values + other.first, other.count);
  }
}

/* Elements of `count` shards from `first` on. */
static struct range shards(int first, int count, int ranks, size_t shard_size, size_t last) {
  size_t longer = first + count == ranks ? last - shard_size : 0;
  return (struct range){(size_t)first * shard_size, (size_t)count * shard_size + longer};
}

static void reduce_scatter(enum accel_axis axis, float *values, float *own, size_t shard_size, size_t last,
                           float *workspace) {
  MPI_Comm channel = rt_channel_along(axis);
  int rank, ranks;
  MPI_Comm_rank(channel, &rank);
  MPI_Comm_size(channel, &ranks);
  for (int distance = ranks / 2; distance > 0; distance /= 2) {
    int kept_first = rank & ~(distance - 1), given_first = kept_first ^ distance;
    const struct range kept = shards(kept_first, distance, ranks, shard_size, last);
    const struct range given = shards(given_first, distance, ranks, shard_size, last);
    exchange(channel, rank ^ distance, values + given.first, given.count, workspace, kept.count);
    for (size_t i = 0; i < kept.count; i++) values[kept.first + i] += workspace[i];
  }
  const struct range kept = shards(rank, 1, ranks, shard_size, last);
  memcpy(own, values + kept.first, kept.count * sizeof *own);
}

/* ---- Concurrently with other work ---- */

/* Within a machine, where others read gradients where they are; else it has ended before this returns. */
static struct shared *carrier(enum accel_axis axis, const float *values) {
  struct shared *shared = rt_shared_along(axis, SHARED_SUMS, values);
  return shared != NULL && rt_shared_is_placed(shared) ? shared : NULL;
}

static void begin(struct shared *shared, struct shared_item item) {
  item.by_tree = true;
  rt_in_flight_add(&rt_sums, MPI_REQUEST_NULL,
                   (struct in_flight){.shared = shared, .number = rt_shared_begin(shared, item)});
}

static void has_ended(void) {
  rt_in_flight_add(&rt_sums, MPI_REQUEST_NULL, (struct in_flight){0});
}

void accel_start_all_reduce_by_tree(enum accel_axis axis, float *values, size_t count, float *workspace) {
  enum { LINE = 16 };
  struct shared *shared = carrier(axis, values);
  if (shared == NULL) {
    accel_all_reduce_by_tree(axis, values, count, workspace);
    has_ended();
    return;
  }
  size_t ranks = (size_t)rt_shared_ranks(shared), shard_size = count / ranks / LINE * LINE;
  begin(shared, (struct shared_item){.kind = SHARED_ALL_REDUCE,
                                     .values = (char *)values,
                                     .shard_size = shard_size,
                                     .last = count - shard_size * (ranks - 1)});
}

void accel_start_reduce_scatter_by_tree(enum accel_axis axis, float *values, float *own, size_t shard_size, size_t last,
                                        float *workspace) {
  struct shared *shared = carrier(axis, values);
  if (shared == NULL) {
    reduce_scatter(axis, values, own, shard_size, last, workspace);
    has_ended();
    return;
  }
  begin(shared, (struct shared_item){.kind = SHARED_REDUCE_SCATTER,
                                     .values = (char *)values,
                                     .own = (char *)own,
                                     .shard_size = shard_size,
                                     .last = last});
}

void accel_all_reduce_doubles_by_tree(enum accel_axis axis, double *values, size_t count) {
  MPI_Comm channel = rt_channel_along(axis);
  double others[MOST_DOUBLES];
  int rank, ranks;
  MPI_Comm_rank(channel, &rank);
  MPI_Comm_size(channel, &ranks);
  for (int distance = ranks / 2; distance > 0; distance /= 2) {
    MPI_Request requests[2];
    rt_mpi_check(MPI_Irecv(others, (int)count, MPI_DOUBLE, rank ^ distance, 0, channel, &requests[0]), what);
    rt_mpi_check(MPI_Isend(values, (int)count, MPI_DOUBLE, rank ^ distance, 0, channel, &requests[1]), what);
    for (int i = 0; i < 2; i++) rt_mpi_wait(&requests[i], what);
    for (size_t i = 0; i < count; i++) values[i] += others[i];
  }
}
