/* The processes of a run over MPI. One channel of MPI for messages between steps, one for each group of the mesh.
 */
#include "runtime/process/world.h"

#include "runtime/mpi/algorithm.h"
#include "runtime/mpi/channel.h"
#include "runtime/mpi/processors.h"
#include "runtime/mpi/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct world world = {0, 1, 0, 1};
static bool joined;

const char *rt_world_engine(void) {
  return "MPI";
}

void rt_world_join(void) {
  int provided;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    fputs("error: MPI does not start\n", stderr);
    exit(1);
  }
  joined = true;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
  rt_channels_open();
  MPI_Comm_rank(rt_channel_here(), &world.local_rank);
  MPI_Comm_size(rt_channel_here(), &world.local_ranks);
}

const struct world *rt_world(void) {
  return &world;
}

bool rt_world_divide(const struct accel_program *program, struct problem *problem) {
  int64_t ranks = rt_mesh_ranks(program);
  if (ranks == world.ranks) {
    rt_channels_divide(program);
    return true;
  }
  rt_problem(problem, "%d process%s started, but this program is for %lld ranks: devices.nodes times devices.per_node",
             world.ranks, world.ranks > 1 ? "es" : "", (long long)ranks);
  if (world.ranks == 1 && getenv("RANK") != NULL && getenv("WORLD_SIZE") != NULL)
    return rt_help(problem, "RANK and WORLD_SIZE are set: let what set them start accel-gen launch JOB PROGRAM");
  return rt_help(problem,
                 "start it with accel-gen launch JOB PROGRAM or mpirun -n %lld, or change devices.per_node or "
                 "devices.nodes in the job",
                 (long long)ranks);
}

void rt_world_open_arena(void *arena, size_t bytes, const struct arena_parts *parts) {
  rt_shared_open(arena, bytes, parts);
}

bool rt_world_take_processors(bool bind, struct processors *own, struct problem *problem) {
  return rt_processors_take(bind, own, problem);
}

/* MPI counts in int. */
enum { MOST_AT_ONCE = 1 << 30 };

static void broadcast(MPI_Comm channel, void *bytes, size_t size, int from, const char *what) {
  MPI_Request request;
  for (size_t at = 0; at < size; at += MOST_AT_ONCE) {
    int count = size - at < MOST_AT_ONCE ? (int)(size - at) : MOST_AT_ONCE;
    rt_mpi_check(MPI_Ibcast((char *)bytes + at, count, MPI_BYTE, from, channel, &request), what);
    rt_mpi_wait(&request, what);
  }
}

void rt_world_broadcast(void *bytes, size_t size) {
  broadcast(rt_channel_between(), bytes, size, 0, "a broadcast from rank 0");
}

void rt_user_broadcast(void *bytes, size_t size, int from, const char *what) {
  broadcast(rt_channel_user(), bytes, size, from, what);
}

int64_t rt_world_largest(int64_t value) {
  MPI_Request request;
  int64_t largest = value;
  rt_choose_all_reduce(sizeof value, world.ranks);
  rt_mpi_check(MPI_Iallreduce(&value, &largest, 1, MPI_INT64_T, MPI_MAX, rt_channel_between(), &request), "all-reduce");
  rt_mpi_wait(&request, "what all ranks agree on");
  return largest;
}

/* What is more than MPI counts goes from each rank to all, one after the other. */
static void gather(MPI_Comm channel, const void *own, void *all, size_t size, const char *what) {
  MPI_Request request;
  if (size <= MOST_AT_ONCE) {
    rt_mpi_check(MPI_Iallgather(own, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, channel, &request), what);
    rt_mpi_wait(&request, what);
    return;
  }
  memcpy((char *)all + (size_t)world.rank * size, own, size);
  for (int rank = 0; rank < world.ranks; rank++)
    broadcast(channel, (char *)all + (size_t)rank * size, size, rank, what);
}

void rt_world_gather(const void *own, void *all, size_t size) {
  gather(rt_channel_between(), own, all, size, "what ranks compare");
}

void rt_user_gather(const void *own, void *all, size_t size, const char *what) {
  gather(rt_channel_user(), own, all, size, what);
}

/* In order, so that only the channel distinguishes them. */
void rt_world_bring(int from, const void *own, void *there, size_t size) {
  static const char what[] = "what rank 0 saves";
  if (world.rank == 0 && from == 0) memcpy(there, own, size);
  if (from == 0 || (world.rank != 0 && world.rank != from)) return;
  for (size_t at = 0; at < size; at += MOST_AT_ONCE) {
    MPI_Request request;
    int count = size - at < MOST_AT_ONCE ? (int)(size - at) : MOST_AT_ONCE;
    rt_mpi_check(world.rank == 0
                     ? MPI_Irecv((char *)there + at, count, MPI_BYTE, from, 0, rt_channel_between(), &request)
                     : MPI_Isend((const char *)own + at, count, MPI_BYTE, 0, 0, rt_channel_between(), &request),
                 what);
    rt_mpi_wait(&request, what);
  }
}

void rt_world_leave(void) {
  rt_channels_close();
  MPI_Finalize();
  joined = false;
}

void rt_world_end(int status) {
  if (joined && world.ranks > 1) MPI_Abort(MPI_COMM_WORLD, status);
  if (joined) MPI_Finalize();
  exit(status);
}

void rt_world_await_end(int status) {
  enum { LONG_ENOUGH = 30 };
  sleep(LONG_ENOUGH);
  _exit(status);
}
