/* NCCL among processes of one machine, over a file of shared memory for each communicator: what ranks ask for is
 * compared before anything moves. */
#define _DEFAULT_SOURCE /* ftruncate */
#include "tests/cuda/standin/nccl.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "unhandled system error";
}

const char *ncclGetLastError(ncclComm_t comm) {
  (void)comm;
  return "requested of the stand-in";
}

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

/* ---- Meeting ---- */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double end_of_wait(void) {
  return now() + (double)setting("STANDIN_TIMEOUT", 120);
}

/* A look-th look at what rank r has not done yet. */
static void wait_a_little(struct ncclComm *comm, int look, double give_up, int r, const char *what) {
  if (atomic_load(&comm->shared->gone)) fault("%s: another rank has given up", what);
  if (now() > give_up) {
    /* Said before any other rank can see it, end, and so end this one. */
    complain("%s, number %llu: rank %d of %d did not come", what, (unsigned long long)comm->number, r, comm->ranks);
    atomic_store(&comm->shared->gone, 1);
    _exit(STANDIN_STATUS);
  }
  if (look < 100) /* then the others, which may be more than the processors, have the machine */
    sched_yield();
  else
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

void nccl_meet(struct ncclComm *comm, const char *what) {
  const double give_up = end_of_wait();
  int wanted = ++comm->barriers;
  atomic_store(&comm->shared->arrived[comm->rank], wanted);
  int looks = 0;
  for (int r = 0; r < comm->ranks; r++)
    while (atomic_load(&comm->shared->arrived[r]) < wanted) wait_a_little(comm, ++looks, give_up, r, what);
}

void nccl_await(struct ncclComm *comm, const atomic_ullong *counter, unsigned long long wanted, const char *what) {
  const double give_up = end_of_wait();
  for (int looks = 0; atomic_load(counter) < wanted;) wait_a_little(comm, ++looks, give_up, 1 - comm->rank, what);
}

static struct shared *open_shared(const char *name) {
  char path[96];
  snprintf(path, sizeof path, "/dev/shm/%s", name);
  int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(struct shared)) != 0) fault("no shared memory %s", path);
  void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) fault("no shared memory %s", path);
  close(file);
  return at;
}

/* Also unlike those of earlier processes of the same number, whose file is still there where their rank 0 was killed.
 */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  if (call("ncclGetUniqueId")) return ncclSystemError;
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "standin-%ld-%llx", (long)getpid(),
           1000000000ULL * (unsigned long long)time.tv_sec + (unsigned long long)time.tv_nsec);
  return ncclSuccess;
}

static struct ncclComm *join(const char *name, int ranks, int rank) {
  struct ncclComm *comm = object_new(COMM, sizeof *comm);
  if (ranks > RANKS || rank < 0 || rank >= ranks) fault("a communicator of %d ranks for rank %d", ranks, rank);
  snprintf(comm->name, sizeof comm->name, "%s", name);
  comm->rank = rank;
  comm->ranks = ranks;
  comm->shared = open_shared(name);
  nccl_meet(comm, "ncclCommInitRank");
  char path[96];
  snprintf(path, sizeof path, "/dev/shm/%s", name);
  unlink(path); /* all have it open; rank 0 may have been killed */
  return comm;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config) {
  (void)config;
  if (call("ncclCommInitRankConfig")) return ncclSystemError;
  no_capture("ncclCommInitRankConfig");
  if (strncmp(id.internal, "standin-", 8) != 0)
    fault("ncclCommInitRankConfig: an id that ncclGetUniqueId did not give");
  *comm = join(id.internal, ranks, rank);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t from, int color, int key, ncclComm_t *made, ncclConfig_t *config) {
  struct ncclComm *comm = object_of(from, COMM, "ncclCommSplit");
  struct request *requests = comm->shared->requests;
  char name[sizeof comm->name];
  (void)config;
  if (call("ncclCommSplit")) return ncclSystemError;
  no_capture("ncclCommSplit");
  requests[comm->rank] = (struct request){"ncclCommSplit", comm->number++, (uint64_t)(uint32_t)key, color, 0};
  nccl_meet(comm, "ncclCommSplit");
  int ranks = 0, rank = 0;
  for (int r = 0; r < comm->ranks; r++) {
    if (strcmp(requests[r].what, "ncclCommSplit") != 0)
      fault("ncclCommSplit, but rank %d does %s", r, requests[r].what);
    if (requests[r].type != color) continue;
    ranks++;
    rank += requests[r].count < (uint64_t)key || (requests[r].count == (uint64_t)key && r < comm->rank);
  }
  snprintf(name, sizeof name, "%.40s-%llu-%d", comm->name, (unsigned long long)comm->number, color);
  nccl_meet(comm, "ncclCommSplit");
  *made = color == NCCL_SPLIT_NOCOLOR ? NULL : join(name, ranks, rank);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  object_of(comm, COMM, "ncclCommFinalize");
  call("ncclCommFinalize");
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  struct ncclComm *own = object_of(comm, COMM, "ncclCommDestroy");
  call("ncclCommDestroy");
  no_capture("ncclCommDestroy");
  munmap(own->shared, sizeof *own->shared);
  object_end(comm, COMM, "ncclCommDestroy");
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  struct ncclComm *own = object_of(comm, COMM, "ncclCommAbort");
  call("ncclCommAbort");
  atomic_store(&own->shared->gone, 1);
  return ncclSuccess;
}

/* Called from a thread of its own: no look at objects, which belong to the main one. STANDIN_FAIL does not count here;
 * STANDIN_ASYNC_ERROR=RANK does. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  bool fails = setting("STANDIN_ASYNC_ERROR", -1) == own_rank();
  *error = fails ? ncclRemoteError : ncclSuccess;
  return comm != NULL ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes, void **handle) {
  object_of(comm, COMM, "ncclCommRegister");
  memory_require(buffer, bytes, DEVICE, "ncclCommRegister");
  if (call("ncclCommRegister")) return ncclInvalidUsage;
  *handle = object_new(WINDOW, 1);
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
  object_of(comm, COMM, "ncclCommDeregister");
  object_end(handle, WINDOW, "ncclCommDeregister");
  return ncclSuccess;
}

/* All ranks must ask for the same. */
void nccl_ask(struct ncclComm *comm, const char *what, size_t count, int type, int sum) {
  struct request own = {"", comm->number++, count, type, sum};
  snprintf(own.what, sizeof own.what, "%s", what);
  comm->shared->requests[comm->rank] = own;
  nccl_meet(comm, what);
  for (int r = 0; r < comm->ranks; r++) {
    const struct request *other = &comm->shared->requests[r];
    if (strcmp(other->what, own.what) == 0 && other->number == own.number && other->count == own.count &&
        other->type == own.type && other->sum == own.sum)
      continue;
    fault("collective %llu is %s of %llu values of type %d, but rank %d of its group does %s of %llu of type %d",
          (unsigned long long)own.number, own.what, (unsigned long long)own.count, own.type, r, other->what,
          (unsigned long long)other->count, other->type);
  }
  nccl_meet(comm, what);
}

/* A window is at the same position of all ranks. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes, ncclWindow_t *window, int flags) {
  struct ncclComm *own = object_of(comm, COMM, "ncclCommWindowRegister");
  memory_require(buffer, bytes, DEVICE, "ncclCommWindowRegister");
  if (call("ncclCommWindowRegister")) return ncclInvalidUsage;
  const long long granularity = setting("STANDIN_GRANULARITY", NCCL_WIN_REQUIRED_ALIGNMENT); /* of small arenas */
  const bool is_small = granularity < NCCL_WIN_REQUIRED_ALIGNMENT;
  if ((uintptr_t)buffer % (uintptr_t)(is_small ? granularity : NCCL_WIN_REQUIRED_ALIGNMENT) != 0)
    fault("ncclCommWindowRegister: memory that is not aligned");
  nccl_ask(own, "ncclCommWindowRegister", bytes, flags, 0);
  *window = object_new(WINDOW, 1);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  object_of(comm, COMM, "ncclCommWindowDeregister");
  object_end(window, WINDOW, "ncclCommWindowDeregister");
  return ncclSuccess;
}
