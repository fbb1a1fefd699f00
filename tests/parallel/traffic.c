/* Counts what a process hands to MPI, by the names of communicators, through MPI's profiling interface, with each rank
 * as on a machine of its own, as ranks of one exchange through memory, unless TOGETHER is set. A library for
 * LD_PRELOAD. At MPI_Finalize a line for each communicator goes to TRAFFIC.RANK: its name, calls, bytes, the largest;
 * and to TRAFFIC.RANK.order one for each call: the communicator and the bytes.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  char name[MPI_MAX_OBJECT_NAME];
  long long calls, bytes, largest;
} counted[16];
static int n_counted;
static struct {
  int comm;
  long long bytes;
} calls[1 << 16];
static size_t n_calls;

static void count(MPI_Comm comm, int n, MPI_Datatype type) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length, width, i = 0;
  PMPI_Comm_get_name(comm, name, &length);
  PMPI_Type_size(type, &width);
  while (i < n_counted && strcmp(counted[i].name, name) != 0) i++;
  if (i == n_counted) strcpy(counted[n_counted++].name, name);
  counted[i].calls++;
  counted[i].bytes += (long long)n * width;
  if ((long long)n * width > counted[i].largest) counted[i].largest = (long long)n * width;
  if (n_calls < sizeof calls / sizeof *calls) {
    calls[n_calls].comm = i;
    calls[n_calls++].bytes = (long long)n * width;
  }
}

int MPI_Iallreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request) {
  count(comm, n, type);
  return PMPI_Iallreduce(from, to, n, type, op, comm, request);
}

/* Of a collective of shards, the whole. */
static int sum_of(const int counts[], MPI_Comm comm) {
  int ranks, sum = 0;
  PMPI_Comm_size(comm, &ranks);
  for (int i = 0; i < ranks; i++) sum += counts[i];
  return sum;
}

int MPI_Ireduce_scatter(const void *from, void *to, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                        MPI_Request *request) {
  count(comm, sum_of(counts, comm), type);
  return PMPI_Ireduce_scatter(from, to, counts, type, op, comm, request);
}

int MPI_Iallgatherv(const void *from, int n, MPI_Datatype own, void *to, const int counts[], const int positions[],
                    MPI_Datatype type, MPI_Comm comm, MPI_Request *request) {
  count(comm, sum_of(counts, comm), type);
  return PMPI_Iallgatherv(from, n, own, to, counts, positions, type, comm, request);
}

/* Of what each rank has of each other one, the whole. */
static void count_parts(MPI_Comm comm, int n, MPI_Datatype type) {
  int ranks;
  PMPI_Comm_size(comm, &ranks);
  count(comm, n * ranks, type);
}

int MPI_Iallgather(const void *from, int n, MPI_Datatype own, void *to, int each, MPI_Datatype type, MPI_Comm comm,
                   MPI_Request *request) {
  count_parts(comm, each, type);
  return PMPI_Iallgather(from, n, own, to, each, type, comm, request);
}

int MPI_Ialltoall(const void *from, int n, MPI_Datatype own, void *to, int each, MPI_Datatype type, MPI_Comm comm,
                  MPI_Request *request) {
  count_parts(comm, n, own);
  return PMPI_Ialltoall(from, n, own, to, each, type, comm, request);
}

/* What a rank gives the others. */
int MPI_Ialltoallw(const void *from, const int counts[], const int positions[], const MPI_Datatype types[], void *to,
                   const int arriving[], const int places[], const MPI_Datatype arriving_types[], MPI_Comm comm,
                   MPI_Request *request) {
  int ranks, bytes = 0, width;
  PMPI_Comm_size(comm, &ranks);
  for (int i = 0; i < ranks; i++) {
    PMPI_Type_size(types[i], &width);
    bytes += counts[i] * width;
  }
  count(comm, bytes, MPI_BYTE);
  return PMPI_Ialltoallw(from, counts, positions, types, to, arriving, places, arriving_types, comm, request);
}

int MPI_Allreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  count(comm, n, type);
  return PMPI_Allreduce(from, to, n, type, op, comm);
}

int MPI_Send(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(comm, n, type);
  return PMPI_Send(from, n, type, to, tag, comm);
}

int MPI_Isend(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
  count(comm, n, type);
  return PMPI_Isend(from, n, type, to, tag, comm, request);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part) {
  int rank;
  if (getenv("TOGETHER") != NULL) return PMPI_Comm_split_type(comm, type, key, info, part);
  PMPI_Comm_rank(comm, &rank);
  return PMPI_Comm_split(comm, rank, 0, part);
}

int MPI_Finalize(void) {
  char path[4096];
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s.%d", getenv("TRAFFIC"), rank);
  FILE *out = fopen(path, "w");
  for (int i = 0; out != NULL && i < n_counted; i++)
    fprintf(out, "%s\t%lld\t%lld\t%lld\n", counted[i].name, counted[i].calls, counted[i].bytes, counted[i].largest);
  if (out != NULL) fclose(out);
  snprintf(path, sizeof path, "%s.%d.order", getenv("TRAFFIC"), rank);
  out = fopen(path, "w");
  for (size_t i = 0; out != NULL && i < n_calls; i++)
    fprintf(out, "%s\t%lld\n", counted[calls[i].comm].name, calls[i].bytes);
  if (out != NULL) fclose(out);
  return PMPI_Finalize();
}
