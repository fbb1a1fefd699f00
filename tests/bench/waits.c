/* How long a process waits for others in its steps, through MPI's profiling interface: a library for LD_PRELOAD. A wait
 * begins with a look at a request that has not ended and ends when it has, with no other call of MPI between. At
 * MPI_Finalize a line goes to WAITS.RANK: the seconds of waits, those in all other calls, the peak memory in KiB.
 * Counted from collective number SKIP on. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double waited, called, since;
static long begun, skip = -1;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int counts(void) {
  if (skip < 0) skip = getenv("SKIP") != NULL ? atol(getenv("SKIP")) : 0;
  return begun > skip;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
  double start = now();
  int code = PMPI_Test(request, done, status);
  if (since == 0) since = start;
  if (!*done) return code;
  if (counts()) waited += now() - since;
  since = 0;
  return code;
}

int MPI_Testall(int count, MPI_Request requests[], int *done, MPI_Status *statuses) {
  double start = now();
  int code = PMPI_Testall(count, requests, done, statuses);
  if (counts()) called += now() - start;
  since = 0;
  return code;
}

/* A collective that goes on beside other work: its call counts, its end is waited for by MPI_Test. */
#define BEGIN(CALL)                                                                                                    \
  do {                                                                                                                 \
    double start = now();                                                                                              \
    int code = CALL;                                                                                                   \
    begun++;                                                                                                           \
    if (counts()) called += now() - start;                                                                             \
    since = 0;                                                                                                         \
    return code;                                                                                                       \
  } while (0)

int MPI_Iallreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request) {
  BEGIN(PMPI_Iallreduce(from, to, n, type, op, comm, request));
}

int MPI_Ireduce_scatter(const void *from, void *to, const int counts_of[], MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                        MPI_Request *request) {
  BEGIN(PMPI_Ireduce_scatter(from, to, counts_of, type, op, comm, request));
}

int MPI_Iallgatherv(const void *from, int n, MPI_Datatype type, void *to, const int counts_of[], const int starts[],
                    MPI_Datatype type_to, MPI_Comm comm, MPI_Request *request) {
  BEGIN(PMPI_Iallgatherv(from, n, type, to, counts_of, starts, type_to, comm, request));
}

int MPI_Finalize(void) {
  char path[4096];
  int rank;
  struct rusage usage;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  getrusage(RUSAGE_SELF, &usage);
  snprintf(path, sizeof path, "%s.%d", getenv("WAITS"), rank);
  FILE *out = fopen(path, "w");
  if (out != NULL) fprintf(out, "%.9f %.9f %ld\n", waited, called, usage.ru_maxrss);
  if (out != NULL) fclose(out);
  return PMPI_Finalize();
}
