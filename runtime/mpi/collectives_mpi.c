/* Collectives over MPI. */
#include "runtime/collectives.h"

#include "runtime/mpi/channel.h"
#include "runtime/problem.h"

#include <stdlib.h>

/* MPI counts in int. */
enum { MOST_AT_ONCE = 1 << 28 };

static MPI_Request begin(enum accel_axis axis, void *values, size_t count, MPI_Datatype type, const char *what) {
  MPI_Request request;
  MPI_Comm channel = rt_channel_along(axis);
  rt_mpi_check(MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, type, MPI_SUM, channel, &request), what);
  return request;
}

/* ---- One after the other ---- */

static void all_reduce(enum accel_axis axis, void *values, size_t count, MPI_Datatype type, const char *what) {
  int width;
  MPI_Type_size(type, &width);
  for (size_t at = 0; at < count; at += MOST_AT_ONCE) {
    size_t n = count - at < MOST_AT_ONCE ? count - at : MOST_AT_ONCE;
    MPI_Request request = begin(axis, (char *)values + at * (size_t)width, n, type, what);
    rt_mpi_wait(&request, what);
  }
}

void accel_all_reduce(enum accel_axis axis, float *values, size_t count) {
  all_reduce(axis, values, count, MPI_FLOAT, "the sum of gradients");
}

void accel_all_reduce_doubles(enum accel_axis axis, double *values, size_t count) {
  all_reduce(axis, values, count, MPI_DOUBLE, "the sum of losses");
}

void accel_all_reduce_counts(enum accel_axis axis, int64_t *values, size_t count) {
  all_reduce(axis, values, count, MPI_INT64_T, "the sum of counts");
}

/* ---- Beside other work ---- */

static struct {
  MPI_Request *items;
  int count, capacity;
} begun;

/* The list grows in a run's first step alone. */
static void add(MPI_Request request) {
  if (begun.count == begun.capacity) {
    struct problem problem;
    begun.capacity = begun.capacity > 0 ? 2 * begun.capacity : 64;
    begun.items = realloc(begun.items, (size_t)begun.capacity * sizeof *begun.items);
    rt_problem(&problem, "no memory for the list of collectives");
    if (begun.items == NULL) rt_fail(&problem, 1);
  }
  begun.items[begun.count++] = request;
}

void accel_start_all_reduce(enum accel_axis axis, float *values, size_t count) {
  for (size_t at = 0; at < count; at += MOST_AT_ONCE)
    add(begin(axis, values + at, count - at < MOST_AT_ONCE ? count - at : MOST_AT_ONCE, MPI_FLOAT,
              "the sum of gradients"));
}

void accel_advance_collectives(void) {
  int done;
  if (begun.count > 0)
    rt_mpi_check(MPI_Testall(begun.count, begun.items, &done, MPI_STATUSES_IGNORE), "the sum of gradients");
}

void accel_wait_collectives(void) {
  for (int i = 0; i < begun.count; i++) rt_mpi_wait(&begun.items[i], "the sum of gradients");
  begun.count = 0;
}
