/* How long all-reduces take as the runtime has MPI do them, and that their sums are right: for each number of bytes a
 * line with it and the median of seconds from the last rank's start to the last one's end, by the clock of the machine
 * that they share. usage: timing TIMES BYTES... */
#include "runtime/mpi/algorithm.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Of ranks 0 to n - 1, each with its number plus that of the element's place in seven. */
static void check(const float *values, int count, int ranks) {
  for (int i = 0; i < count; i++)
    if (values[i] != (float)(ranks * (ranks - 1) / 2 + ranks * (i % 7))) {
      fprintf(stderr, "element %d of %d is %g\n", i, count, (double)values[i]);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double once(float *values, int count) {
  MPI_Request request;
  const struct timespec pause = {0, 500000}; /* other ranks may be on this processor */
  int done = 0, rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < count; i++) values[i] = (float)(rank + i % 7);
  MPI_Barrier(MPI_COMM_WORLD);
  rt_choose_all_reduce((size_t)count * sizeof *values, ranks);
  double own[2] = {now()}, last[2];
  MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) nanosleep(&pause, NULL);
  own[1] = now();
  check(values, count, ranks);
  MPI_Allreduce(own, last, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return last[1] - last[0];
}

int main(int argc, char **argv) {
  int rank, times = atoi(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double *seconds = calloc((size_t)times, sizeof *seconds);
  for (int i = 2; i < argc; i++) {
    int count = atoi(argv[i]) / (int)sizeof(float);
    float *values = calloc((size_t)count, sizeof *values);
    once(values, count);
    for (int k = 0; k < times; k++) seconds[k] = once(values, count);
    qsort(seconds, (size_t)times, sizeof *seconds, by_size);
    if (rank == 0) printf("%s %.6f\n", argv[i], seconds[times / 2]);
    free(values);
  }
  free(seconds);
  return MPI_Finalize();
}
