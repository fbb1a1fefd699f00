/* Collectives over MPI. */
#include "include/accel/collectives.h"

#include "runtime/base/half.h"
#include "runtime/base/problem.h"
#include "runtime/mpi/algorithm.h"
#include "runtime/mpi/channel.h"
#include "runtime/mpi/in_flight.h"

#include <stdlib.h>

/* MPI counts in int. */
enum { MOST_AT_ONCE = 1 << 28 };

/* Begins to add up `from` into `to`, which may be the same. */
static MPI_Request begin(MPI_Comm channel, const void *from, void *to, size_t count, MPI_Datatype type, MPI_Op sum,
                         const char *what) {
  const void *source = from == to ? MPI_IN_PLACE : from;
  MPI_Request request;
  int width, ranks;
  MPI_Type_size(type, &width);
  MPI_Comm_size(channel, &ranks);
  rt_choose_all_reduce(count * (size_t)width, ranks);
  rt_mpi_check(MPI_Iallreduce(source, to, (int)count, type, sum, channel, &request), what);
  return request;
}

/* MPI has no such types: sums of its own, each rounded. */
static void add_bfloat16(void *from, void *to, int *count, MPI_Datatype *type) {
  const uint16_t *a = from;
  uint16_t *b = to;
  (void)type;
  for (int i = 0; i < *count; i++) b[i] = rt_narrow_bfloat16(rt_widen_bfloat16(a[i]) + rt_widen_bfloat16(b[i]));
}

static void add_float16(void *from, void *to, int *count, MPI_Datatype *type) {
  const uint16_t *a = from;
  uint16_t *b = to;
  (void)type;
  for (int i = 0; i < *count; i++) b[i] = rt_narrow_float16(rt_widen_float16(a[i]) + rt_widen_float16(b[i]));
}

static MPI_Op sum_of(enum accel_dtype dtype) {
  static MPI_Op sums[2] = {MPI_OP_NULL, MPI_OP_NULL};
  MPI_Op *sum = &sums[dtype == ACCEL_FLOAT16];
  if (*sum == MPI_OP_NULL)
    rt_mpi_check(MPI_Op_create(dtype == ACCEL_FLOAT16 ? add_float16 : add_bfloat16, 1, sum), rt_sums.what);
  return *sum;
}

/* ---- One after the other ---- */

static void all_reduce_from(enum accel_axis axis, const void *x, void *y, size_t count, MPI_Datatype type, MPI_Op sum,
                            const char *what) {
  int width;
  MPI_Type_size(type, &width);
  for (size_t at = 0; at < count; at += MOST_AT_ONCE) {
    size_t n = count - at < MOST_AT_ONCE ? count - at : MOST_AT_ONCE;
    const char *from = (const char *)x + at * (size_t)width;
    char *to = (char *)y + at * (size_t)width;
    MPI_Request request = begin(rt_channel_along(axis), from, to, n, type, sum, what);
    rt_mpi_wait(&request, what);
  }
}

static void all_reduce(enum accel_axis axis, void *values, size_t count, MPI_Datatype type, const char *what) {
  all_reduce_from(axis, values, values, count, type, MPI_SUM, what);
}

void accel_all_reduce(enum accel_axis axis, float *values, size_t count) {
  if (rt_shared_along(axis, SHARED_SUMS, values) != NULL) {
    accel_start_all_reduce(axis, values, count);
    accel_wait_collectives();
    return;
  }
  all_reduce(axis, values, count, MPI_FLOAT, "the sum of gradients");
}

static const char sum_of_activations[] = "the sum of activations";

void accel_all_reduce_from(enum accel_axis axis, const float *x, float *y, size_t count) {
  all_reduce_from(axis, x, y, count, MPI_FLOAT, MPI_SUM, sum_of_activations);
}

void accel_all_reduce_bfloat16_from(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t count) {
  all_reduce_from(axis, x, y, count, MPI_UINT16_T, sum_of(ACCEL_BFLOAT16), sum_of_activations);
}

void accel_all_reduce_float16_from(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t count) {
  all_reduce_from(axis, x, y, count, MPI_UINT16_T, sum_of(ACCEL_FLOAT16), sum_of_activations);
}

/* NaN is larger than any number. */
static void keep_larger(void *from, void *to, int *count, MPI_Datatype *type) {
  const double *a = from;
  double *b = to;
  (void)type;
  for (int i = 0; i < *count; i++) b[i] = a[i] > b[i] || a[i] != a[i] ? a[i] : b[i];
}

void accel_all_reduce_largest(enum accel_axis axis, double *values, size_t count) {
  static const char what[] = "the largest gradient";
  static MPI_Op larger = MPI_OP_NULL;
  if (larger == MPI_OP_NULL) rt_mpi_check(MPI_Op_create(keep_larger, 1, &larger), what);
  MPI_Request request = begin(rt_channel_along(axis), values, values, count, MPI_DOUBLE, larger, what);
  rt_mpi_wait(&request, what);
}

void accel_all_reduce_doubles(enum accel_axis axis, double *values, size_t count) {
  all_reduce(axis, values, count, MPI_DOUBLE, "a sum of losses or statistics");
}

void accel_all_reduce_counts(enum accel_axis axis, int64_t *values, size_t count) {
  all_reduce(axis, values, count, MPI_INT64_T, "the sum of counts");
}

/* ---- Concurrently with other work ---- */

/* Begins it among the ranks of one machine; false: they are on several. */
static bool start_shared(struct in_flight_list *list, enum accel_axis axis, enum accel_dtype dtype, void *values,
                         size_t count, struct in_flight item) {
  enum { LINE = 64 };
  struct shared *shared = rt_shared_along(axis, SHARED_SUMS, values);
  if (shared == NULL) return false;
  size_t width = dtype == ACCEL_FLOAT32 ? 4 : 2, ranks = (size_t)rt_shared_ranks(shared);
  size_t shard_size = count / ranks * width / LINE * LINE / width;
  item.shared = shared;
  item.number = rt_shared_begin(shared, (struct shared_item){.kind = SHARED_ALL_REDUCE,
                                                             .dtype = dtype,
                                                             .values = values,
                                                             .shard_size = shard_size,
                                                             .last = count - shard_size * (ranks - 1)});
  rt_in_flight_add(list, MPI_REQUEST_NULL, item);
  return true;
}

static void start(struct in_flight_list *list, enum accel_axis axis, MPI_Comm channel, float *values, size_t count) {
  if (start_shared(list, axis, ACCEL_FLOAT32, values, count, (struct in_flight){0})) return;
  for (size_t at = 0; at < count; at += MOST_AT_ONCE) {
    size_t n = count - at < MOST_AT_ONCE ? count - at : MOST_AT_ONCE;
    rt_in_flight_add(list, begin(channel, values + at, values + at, n, MPI_FLOAT, MPI_SUM, list->what),
                     (struct in_flight){0});
  }
}

void accel_start_all_reduce(enum accel_axis axis, float *values, size_t count) {
  start(&rt_sums, axis, rt_channel_along(axis), values, count);
}

static void chain(struct in_flight_list *list, enum accel_axis axis, float *values, size_t count);

/* Sums along one axis have one position in all chains, so they begin in one order on all ranks. */
static void start_chained(const struct in_flight *item) {
  start(&rt_sums_chained, item->chain[0], rt_channel_chained(item->chain[0]), item->chain_values, item->chain_count);
  for (int i = 1; i < item->n_chain; i++)
    chain(&rt_sums_chained, item->chain[i], item->chain_values, item->chain_count);
}

/* To the last sum of a list. */
static void chain(struct in_flight_list *list, enum accel_axis axis, float *values, size_t count) {
  struct in_flight *last = &list->items[list->count - 1];
  last->next = start_chained;
  last->chain_values = values;
  last->chain_count = count;
  last->chain[last->n_chain++] = axis;
}

void accel_start_all_reduce_chained(enum accel_axis axis, float *values, size_t count) {
  chain(&rt_sums, axis, values, count);
}

/* ---- Getting on ---- */

void accel_advance_collectives(void) {
  rt_shared_advance();
  rt_in_flight_advance(&rt_sums);
  rt_in_flight_advance(&rt_sums_chained);
  rt_in_flight_advance(&rt_gathers);
}

/* ---- In 16 bits ---- */

static void narrow(enum accel_dtype dtype, const float *values, uint16_t *wire, size_t count) {
  if (dtype == ACCEL_FLOAT16)
    for (size_t i = 0; i < count; i++) wire[i] = rt_narrow_float16(values[i]);
  else
    for (size_t i = 0; i < count; i++) wire[i] = rt_narrow_bfloat16(values[i]);
}

static void widen(const struct in_flight *item) {
  const uint16_t *wire = item->arrived;
  if (item->dtype == ACCEL_FLOAT16)
    for (size_t i = 0; i < item->count; i++) item->values[i] = rt_widen_float16(wire[i]);
  else
    for (size_t i = 0; i < item->count; i++) item->values[i] = rt_widen_bfloat16(wire[i]);
}

void accel_start_all_reduce_as(enum accel_axis axis, enum accel_dtype dtype, float *values, uint16_t *wire,
                               size_t count) {
  narrow(dtype, values, wire, count);
  struct in_flight whole = {.end = widen, .dtype = dtype, .values = values, .arrived = wire, .count = count};
  if (start_shared(&rt_sums, axis, dtype, wire, count, whole)) return;
  for (size_t at = 0; at < count; at += MOST_AT_ONCE) {
    size_t n = count - at < MOST_AT_ONCE ? count - at : MOST_AT_ONCE;
    rt_in_flight_add(
        &rt_sums, begin(rt_channel_along(axis), wire + at, wire + at, n, MPI_UINT16_T, sum_of(dtype), rt_sums.what),
        (struct in_flight){.end = widen, .dtype = dtype, .values = values + at, .arrived = wire + at, .count = n});
  }
}

void accel_wait_collectives(void) {
  rt_in_flight_wait_all(&rt_sums);
  rt_in_flight_wait_all(&rt_sums_chained);
}

void accel_wait_reductions(size_t count) {
  rt_in_flight_wait(&rt_sums, (int)count);
}

void accel_wait_gathers(void) {
  rt_in_flight_wait_all(&rt_gathers);
}
