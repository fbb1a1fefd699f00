/* What one stage of a pipeline gives another, over MPI. */
#include "include/accel/collectives.h"

#include "runtime/mpi/channel.h"

enum {
  MOST_AT_ONCE = 1 << 28, /* MPI counts in int */
  ADDED_AT_ONCE = 1 << 16
};

/* What is on its way, of messages that were started, and from where. More than schedules of 32 stages have. */
static struct {
  MPI_Request requests[1024];
  const void *values[1024];
  int count;
} started;

static void wait_for(int i) {
  rt_mpi_wait(&started.requests[i], "what another stage takes");
}

void accel_wait_sends(void) {
  for (int i = 0; i < started.count; i++) wait_for(i);
  started.count = 0;
}

void accel_wait_send(const void *values) {
  int left = 0;
  for (int i = 0; i < started.count; i++) {
    if (started.values[i] == values) {
      wait_for(i);
      continue;
    }
    started.requests[left] = started.requests[i];
    started.values[left++] = started.values[i];
  }
  started.count = left;
}

void accel_start_send(enum accel_axis axis, int to, const void *values, size_t bytes) {
  for (size_t at = 0; at < bytes; at += MOST_AT_ONCE) {
    size_t n = bytes - at < MOST_AT_ONCE ? bytes - at : MOST_AT_ONCE;
    if (started.count == (int)(sizeof started.requests / sizeof *started.requests)) accel_wait_sends();
    started.values[started.count] = values;
    rt_mpi_check(MPI_Isend((const char *)values + at, (int)n, MPI_BYTE, to, 0, rt_channel_along(axis),
                           &started.requests[started.count++]),
                 "what another stage takes");
  }
}

void accel_send(enum accel_axis axis, int to, const void *values, size_t bytes) {
  accel_start_send(axis, to, values, bytes);
  accel_wait_sends();
}

void accel_take(enum accel_axis axis, int from, void *values, size_t bytes) {
  static const char what[] = "what another stage gives";
  for (size_t at = 0; at < bytes; at += MOST_AT_ONCE) {
    size_t n = bytes - at < MOST_AT_ONCE ? bytes - at : MOST_AT_ONCE;
    MPI_Request request;
    rt_mpi_check(MPI_Irecv((char *)values + at, (int)n, MPI_BYTE, from, 0, rt_channel_along(axis), &request), what);
    rt_mpi_wait(&request, what);
  }
}

void accel_receive(enum accel_axis axis, int from, void *values, size_t bytes) {
  accel_take(axis, from, values, bytes);
  accel_wait_sends();
}

void accel_add_other(enum accel_axis axis, int other, float *values, size_t count) {
  static const char what[] = "gradients that two stages add up";
  static float others[ADDED_AT_ONCE];
  MPI_Comm channel = rt_channel_along(axis);
  for (size_t at = 0; at < count; at += ADDED_AT_ONCE) {
    size_t n = count - at < ADDED_AT_ONCE ? count - at : ADDED_AT_ONCE;
    MPI_Request sent, received;
    rt_mpi_check(MPI_Irecv(others, (int)n, MPI_FLOAT, other, 0, channel, &received), what);
    rt_mpi_check(MPI_Isend(values + at, (int)n, MPI_FLOAT, other, 0, channel, &sent), what);
    rt_mpi_wait(&received, what);
    rt_mpi_wait(&sent, what);
    for (size_t i = 0; i < n; i++) values[at + i] += others[i];
  }
}
