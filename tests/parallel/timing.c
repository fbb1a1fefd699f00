/* How long collectives take as the runtime has MPI do them, and that the sums of all-reduces are right: for each a line
 * with it and the fewest seconds from a time at which all ranks start, by the clock of the machine that they share, to
 * the last one's end. usage: timing TIMES KIND:BYTES... */
#include "runtime/mpi/algorithm.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of ranks 0 to n - 1, each with its number plus that of the element's position in seven. */
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

static void begin(const char *kind, float *values, int count, int ranks, MPI_Request *request) {
  static float own[1 << 18];
  static int counts[16], starts[16];
  for (int i = 0; i < ranks; i++) counts[i] = count / ranks, starts[i] = i * (count / ranks);
  rt_choose_all_reduce((size_t)count * sizeof *values, ranks);
  if (strncmp(kind, "all-reduce", 10) == 0)
    MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, request);
  else if (strncmp(kind, "reduce-scatter", 14) == 0)
    MPI_Ireduce_scatter(values, own, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, request);
  else
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_FLOAT, values, counts, starts, MPI_FLOAT, MPI_COMM_WORLD, request);
}

/* A moment that every rank has received before it comes; waits for it. What a rank is late by counts as time taken:
 * ranks that leave a barrier at different times would find messages there already. */
static double start_together(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  double own = now() + 0.2, start; /* longer than the all-reduce takes */
  MPI_Allreduce(&own, &start, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  while (now() < start) nanosleep(&(struct timespec){0, 100000}, NULL);
  return start;
}

static double once(const char *kind, float *values, int count) {
  MPI_Request request;
  const struct timespec pause = {0, 500000}; /* other ranks may be on this processor */
  int done = 0, rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < count; i++) values[i] = (float)(rank + i % 7);
  double start = start_together(), end, last;
  begin(kind, values, count, ranks, &request);
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) nanosleep(&pause, NULL);
  end = now();
  if (strncmp(kind, "all-reduce", 10) == 0) check(values, count, ranks);
  MPI_Allreduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return last - start;
}

int main(int argc, char **argv) {
  int rank, times = atoi(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 2; i < argc; i++) {
    int count = atoi(strchr(argv[i], ':') + 1) / (int)sizeof(float);
    float *values = calloc((size_t)count, sizeof *values);
    double least = once(argv[i], values, count);
    for (int k = 1; k < times; k++) {
      double seconds = once(argv[i], values, count);
      if (seconds < least) least = seconds;
    }
    if (rank == 0) printf("%s %.6f\n", argv[i], least);
    free(values);
  }
  return MPI_Finalize();
}
