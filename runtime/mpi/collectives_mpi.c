/* Collectives over MPI. */
#include "runtime/collectives.h"

#include "runtime/half.h"
#include "runtime/mpi/channel.h"
#include "runtime/problem.h"

#include <stdlib.h>

/* MPI counts in int. */
enum { MOST_AT_ONCE = 1 << 28 };

static MPI_Request begin(enum accel_axis axis, void *values, size_t count, MPI_Datatype type, MPI_Op sum,
                         const char *what) {
  MPI_Request request;
  MPI_Comm channel = rt_channel_along(axis);
  rt_mpi_check(MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, type, sum, channel, &request), what);
  return request;
}

/* ---- One after the other ---- */

static void all_reduce(enum accel_axis axis, void *values, size_t count, MPI_Datatype type, const char *what) {
  int width;
  MPI_Type_size(type, &width);
  for (size_t at = 0; at < count; at += MOST_AT_ONCE) {
    size_t n = count - at < MOST_AT_ONCE ? count - at : MOST_AT_ONCE;
    MPI_Request request = begin(axis, (char *)values + at * (size_t)width, n, type, MPI_SUM, what);
    rt_mpi_wait(&request, what);
  }
}

void accel_all_reduce(enum accel_axis axis, float *values, size_t count) {
  all_reduce(axis, values, count, MPI_FLOAT, "the sum of gradients");
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
  MPI_Request request = begin(axis, values, count, MPI_DOUBLE, larger, what);
  rt_mpi_wait(&request, what);
}

void accel_all_reduce_doubles(enum accel_axis axis, double *values, size_t count) {
  all_reduce(axis, values, count, MPI_DOUBLE, "the sum of losses");
}

void accel_all_reduce_counts(enum accel_axis axis, int64_t *values, size_t count) {
  all_reduce(axis, values, count, MPI_INT64_T, "the sum of counts");
}

/* ---- Beside other work ---- */

static const char sum_of_gradients[] = "the sum of gradients";

/* What has begun; of values that travel in 16 bits, where they go when they are back. */
struct begun {
  enum accel_dtype dtype;
  float *values; /* NULL: they travel as they are */
  const uint16_t *wire;
  size_t count;
  int *counts; /* of a collective of pieces, which MPI reads until it ends */
};

static struct {
  MPI_Request *requests;
  struct begun *items;
  int count, capacity;
} begun;

/* The lists grow in a run's first step alone. */
static void add(MPI_Request request, struct begun item) {
  if (begun.count == begun.capacity) {
    struct problem problem;
    begun.capacity = begun.capacity > 0 ? 2 * begun.capacity : 64;
    begun.requests = realloc(begun.requests, (size_t)begun.capacity * sizeof *begun.requests);
    begun.items = realloc(begun.items, (size_t)begun.capacity * sizeof *begun.items);
    rt_problem(&problem, "no memory for the list of collectives");
    if (begun.requests == NULL || begun.items == NULL) rt_fail(&problem, 1);
  }
  begun.requests[begun.count] = request;
  begun.items[begun.count++] = item;
}

void accel_start_all_reduce(enum accel_axis axis, float *values, size_t count) {
  for (size_t at = 0; at < count; at += MOST_AT_ONCE) {
    size_t n = count - at < MOST_AT_ONCE ? count - at : MOST_AT_ONCE;
    add(begin(axis, values + at, n, MPI_FLOAT, MPI_SUM, sum_of_gradients), (struct begun){0});
  }
}

/* ---- Pieces ---- */

static int ranks_along(enum accel_axis axis) {
  int ranks;
  MPI_Comm_size(rt_channel_along(axis), &ranks);
  return ranks;
}

void accel_start_reduce_scatter(enum accel_axis axis, const float *values, float *own, size_t piece, size_t last) {
  MPI_Request request;
  int *counts = rt_piece_counts(ranks_along(axis), piece, last);
  rt_mpi_check(MPI_Ireduce_scatter(values, own, counts, MPI_FLOAT, MPI_SUM, rt_channel_along(axis), &request),
               sum_of_gradients);
  add(request, (struct begun){.counts = counts});
}

void accel_start_all_gather(enum accel_axis axis, float *values, size_t piece, size_t last) {
  static const char what[] = "the weights of all ranks";
  MPI_Request request;
  int ranks = ranks_along(axis), *counts = rt_piece_counts(ranks, piece, last);
  rt_mpi_check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, counts, counts + ranks, MPI_FLOAT,
                               rt_channel_along(axis), &request),
               what);
  add(request, (struct begun){.counts = counts});
}

/* ---- Getting on ---- */

void accel_advance_collectives(void) {
  int done;
  if (begun.count > 0)
    rt_mpi_check(MPI_Testall(begun.count, begun.requests, &done, MPI_STATUSES_IGNORE), sum_of_gradients);
}

/* ---- In 16 bits ---- */

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
    rt_mpi_check(MPI_Op_create(dtype == ACCEL_FLOAT16 ? add_float16 : add_bfloat16, 1, sum), sum_of_gradients);
  return *sum;
}

static void narrow(enum accel_dtype dtype, const float *values, uint16_t *wire, size_t count) {
  if (dtype == ACCEL_FLOAT16)
    for (size_t i = 0; i < count; i++) wire[i] = rt_narrow_float16(values[i]);
  else
    for (size_t i = 0; i < count; i++) wire[i] = rt_narrow_bfloat16(values[i]);
}

static void widen(const struct begun *item) {
  if (item->dtype == ACCEL_FLOAT16)
    for (size_t i = 0; i < item->count; i++) item->values[i] = rt_widen_float16(item->wire[i]);
  else
    for (size_t i = 0; i < item->count; i++) item->values[i] = rt_widen_bfloat16(item->wire[i]);
}

void accel_start_all_reduce_as(enum accel_axis axis, enum accel_dtype dtype, float *values, uint16_t *wire,
                               size_t count) {
  narrow(dtype, values, wire, count);
  for (size_t at = 0; at < count; at += MOST_AT_ONCE) {
    size_t n = count - at < MOST_AT_ONCE ? count - at : MOST_AT_ONCE;
    add(begin(axis, wire + at, n, MPI_UINT16_T, sum_of(dtype), sum_of_gradients),
        (struct begun){.dtype = dtype, .values = values + at, .wire = wire + at, .count = n});
  }
}

void accel_wait_collectives(void) {
  for (int i = 0; i < begun.count; i++) {
    rt_mpi_wait(&begun.requests[i], sum_of_gradients);
    if (begun.items[i].values != NULL) widen(&begun.items[i]);
    free(begun.items[i].counts);
  }
  begun.count = 0;
}
