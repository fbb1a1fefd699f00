/* NCCL among processes of one machine, over a file of shared memory for each communicator: what ranks ask for is
 * compared before anything moves, and sums are added up in the order of the ranks. */
#define _DEFAULT_SOURCE /* usleep, syscall numbers of mmap */
#include "tests/cuda/standin/core.h"

#include "runtime/half.h"

#include <fcntl.h>
#include <nccl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 64, PIECE = 1 << 16 };

/* What a rank asks for. */
struct request {
  char what[24];
  uint64_t number, count;
  int32_t type, sum;
};

struct shared {
  atomic_int arrived[RANKS]; /* how many barriers each has come to */
  atomic_int gone;           /* a rank has ended its communicator by force */
  struct request requests[RANKS];
  char pieces[RANKS][PIECE];
};

struct ncclComm {
  struct shared *shared;
  int rank, ranks, barriers;
  uint64_t number; /* of collectives so far */
  char name[64];
};

struct collective {
  struct ncclComm *comm;
  char what[24];
  const void *send;
  void *receive;
  size_t count; /* of what a rank gives to all-reduce and all-gather, and gets of reduce-scatter */
  ncclDataType_t type;
  ncclRedOp_t sum;
};

const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "unhandled system error";
}

const char *ncclGetLastError(ncclComm_t comm) {
  (void)comm;
  return "as the stand-in was asked";
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

static void meet(struct ncclComm *comm, const char *what) {
  double give_up = now() + (double)setting("STANDIN_TIMEOUT", 30);
  int wanted = ++comm->barriers;
  atomic_store(&comm->shared->arrived[comm->rank], wanted);
  for (int r = 0; r < comm->ranks; r++)
    while (atomic_load(&comm->shared->arrived[r]) < wanted) {
      if (atomic_load(&comm->shared->gone)) fault("%s: another rank has given up", what);
      if (now() > give_up) {
        atomic_store(&comm->shared->gone, 1);
        fault("%s, number %llu: rank %d of %d did not come", what, (unsigned long long)comm->number, r, comm->ranks);
      }
      sched_yield();
    }
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

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static int made;
  if (call("ncclGetUniqueId")) return ncclSystemError;
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "standin-%ld-%d", (long)getpid(), made++);
  return ncclSuccess;
}

static struct ncclComm *join(const char *name, int ranks, int rank) {
  struct ncclComm *comm = object_new(COMM, sizeof *comm);
  if (ranks > RANKS || rank < 0 || rank >= ranks) fault("a communicator of %d ranks for rank %d", ranks, rank);
  snprintf(comm->name, sizeof comm->name, "%s", name);
  comm->rank = rank;
  comm->ranks = ranks;
  comm->shared = open_shared(name);
  meet(comm, "ncclCommInitRank");
  char path[96];
  snprintf(path, sizeof path, "/dev/shm/%s", name);
  if (rank == 0) unlink(path); /* all have it open */
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

static void ask(struct ncclComm *comm, const char *what, size_t count, int type, int sum);

ncclResult_t ncclCommSplit(ncclComm_t from, int color, int key, ncclComm_t *made, ncclConfig_t *config) {
  struct ncclComm *comm = object_of(from, COMM, "ncclCommSplit");
  struct request *requests = comm->shared->requests;
  char name[sizeof comm->name];
  (void)config;
  if (call("ncclCommSplit")) return ncclSystemError;
  no_capture("ncclCommSplit");
  requests[comm->rank] = (struct request){"ncclCommSplit", comm->number++, (uint64_t)(uint32_t)key, color, 0};
  meet(comm, "ncclCommSplit");
  int ranks = 0, rank = 0;
  for (int r = 0; r < comm->ranks; r++) {
    if (strcmp(requests[r].what, "ncclCommSplit") != 0)
      fault("ncclCommSplit, but rank %d does %s", r, requests[r].what);
    if (requests[r].type != color) continue;
    ranks++;
    rank += requests[r].count < (uint64_t)key || (requests[r].count == (uint64_t)key && r < comm->rank);
  }
  snprintf(name, sizeof name, "%.40s-%llu-%d", comm->name, (unsigned long long)comm->number, color);
  meet(comm, "ncclCommSplit");
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

/* A window lies at the same place of all ranks. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes, ncclWindow_t *window, int flags) {
  struct ncclComm *own = object_of(comm, COMM, "ncclCommWindowRegister");
  memory_require(buffer, bytes, DEVICE, "ncclCommWindowRegister");
  if (call("ncclCommWindowRegister")) return ncclInvalidUsage;
  if ((uintptr_t)buffer % NCCL_WIN_REQUIRED_ALIGNMENT != 0) fault("ncclCommWindowRegister: memory that is not aligned");
  ask(own, "ncclCommWindowRegister", bytes, flags, 0);
  *window = object_new(WINDOW, 1);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  object_of(comm, COMM, "ncclCommWindowDeregister");
  object_end(window, WINDOW, "ncclCommWindowDeregister");
  return ncclSuccess;
}

/* ---- Collectives ---- */

static size_t width(ncclDataType_t type) {
  static const size_t widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  if ((unsigned)type >= sizeof widths / sizeof *widths) fault("a collective of the type %d", (int)type);
  return widths[type];
}

/* All ranks must ask for the same. */
static void ask(struct ncclComm *comm, const char *what, size_t count, int type, int sum) {
  struct request own = {"", comm->number++, count, type, sum};
  snprintf(own.what, sizeof own.what, "%s", what);
  comm->shared->requests[comm->rank] = own;
  meet(comm, what);
  for (int r = 0; r < comm->ranks; r++) {
    const struct request *other = &comm->shared->requests[r];
    if (strcmp(other->what, own.what) == 0 && other->number == own.number && other->count == own.count &&
        other->type == own.type && other->sum == own.sum)
      continue;
    fault("collective %llu is %s of %llu values of type %d, but rank %d of its group does %s of %llu of type %d",
          (unsigned long long)own.number, own.what, (unsigned long long)own.count, own.type, r, other->what,
          (unsigned long long)other->count, other->type);
  }
  meet(comm, what);
}

static void add_to(void *sum, const void *other, size_t count, ncclDataType_t type) {
  for (size_t i = 0; i < count; i++) switch (type) {
    case ncclFloat32:
      ((float *)sum)[i] += ((const float *)other)[i];
      break;
    case ncclFloat64:
      ((double *)sum)[i] += ((const double *)other)[i];
      break;
    case ncclInt32:
      ((int32_t *)sum)[i] += ((const int32_t *)other)[i];
      break;
    case ncclInt64:
      ((int64_t *)sum)[i] += ((const int64_t *)other)[i];
      break;
    case ncclFloat16:
      ((uint16_t *)sum)[i] =
          rt_narrow_float16(rt_widen_float16(((uint16_t *)sum)[i]) + rt_widen_float16(((const uint16_t *)other)[i]));
      break;
    case ncclBfloat16:
      ((uint16_t *)sum)[i] =
          rt_narrow_bfloat16(rt_widen_bfloat16(((uint16_t *)sum)[i]) + rt_widen_bfloat16(((const uint16_t *)other)[i]));
      break;
    default:
      fault("a sum of values of the type %d", (int)type);
    }
}

/* Moves one piece of at most PIECE bytes: sums[first, n] of all ranks to `to`, or each rank's to its place. */
static void move(const struct collective *c, size_t first, size_t n, bool sums, char *to, size_t place_bytes) {
  struct ncclComm *comm = c->comm;
  size_t size = width(c->type);
  if (c->send != NULL) memcpy(comm->shared->pieces[comm->rank], (const char *)c->send + first * size, n * size);
  meet(comm, c->what);
  for (int r = 0; r < comm->ranks && to != NULL; r++) {
    const char *piece = comm->shared->pieces[r];
    if (!sums)
      memcpy(to + (size_t)r * place_bytes, piece, n * size);
    else if (r == 0)
      memcpy(to, piece, n * size);
    else
      add_to(to, piece, n, c->type);
  }
  meet(comm, c->what);
}

static void run_collective(const void *arguments) {
  const struct collective *c = arguments;
  size_t size = width(c->type), at_once = PIECE / size, ranks = (size_t)c->comm->ranks;
  bool gathers = strcmp(c->what, "ncclAllGather") == 0, scatters = strcmp(c->what, "ncclReduceScatter") == 0;
  size_t given = c->count * (scatters ? ranks : 1), got = c->count * (gathers ? ranks : 1);
  touch(c->send, given * size, false);
  touch(c->receive, got * size, true);
  ask(c->comm, c->what, c->count, c->type, c->sum);
  size_t own = (size_t)c->comm->rank * c->count; /* of a scatter */
  for (size_t at = 0; at < given;) {
    size_t n = given - at < at_once ? given - at : at_once;
    if (scatters && at % c->count + n > c->count) n = c->count - at % c->count;
    char *to = (char *)c->receive + at * size;
    if (scatters) to = at >= own && at < own + c->count ? (char *)c->receive + (at - own) * size : NULL;
    move(c, at, n, !gathers, to, c->count * size);
    at += n;
  }
}

static ncclResult_t begin(struct collective c, const char *what, cudaStream_t stream, size_t given, size_t got) {
  c.comm = object_of(c.comm, COMM, what);
  snprintf(c.what, sizeof c.what, "%s", what);
  memory_require(c.send, given * width(c.type), DEVICE, what);
  memory_require(c.receive, got * width(c.type), DEVICE, what);
  if (call(what)) return ncclUnhandledCudaError;
  submit(stream, what, run_collective, &c, sizeof c);
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  if (op != ncclSum) fault("ncclAllReduce of another kind than a sum");
  return begin((struct collective){comm, "", send, receive, count, type, op}, "ncclAllReduce", stream, count, count);
}

ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  size_t ranks = (size_t)((struct ncclComm *)object_of(comm, COMM, "ncclReduceScatter"))->ranks;
  if (op != ncclSum) fault("ncclReduceScatter of another kind than a sum");
  return begin((struct collective){comm, "", send, receive, count, type, op}, "ncclReduceScatter", stream,
               count * ranks, count);
}

ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  size_t ranks = (size_t)((struct ncclComm *)object_of(comm, COMM, "ncclAllGather"))->ranks;
  return begin((struct collective){comm, "", send, receive, count, type, 0}, "ncclAllGather", stream, count,
               count * ranks);
}

/* One rank's piece, or one rank's sum: `root` is part of what all must ask for alike. */
struct rooted {
  struct collective of;
  int root;
};

static void run_rooted(const void *arguments) {
  const struct rooted *rooted = arguments;
  const struct collective *c = &rooted->of;
  size_t size = width(c->type), at_once = PIECE / size;
  bool sums = strcmp(c->what, "ncclReduce") == 0, is_root = c->comm->rank == rooted->root;
  if (sums || is_root) touch(c->send, c->count * size, false);
  if (!sums || is_root) touch(c->receive, c->count * size, true);
  ask(c->comm, c->what, c->count, c->type, rooted->root);
  for (size_t at = 0; at < c->count;) {
    size_t n = c->count - at < at_once ? c->count - at : at_once;
    char *to = (char *)c->receive + at * size;
    memcpy(c->comm->shared->pieces[c->comm->rank], (const char *)c->send + at * size, n * size);
    meet(c->comm, c->what);
    if (!sums) memcpy(to, c->comm->shared->pieces[rooted->root], n * size);
    for (int r = 0; r < c->comm->ranks && sums && is_root; r++)
      if (r == 0)
        memcpy(to, c->comm->shared->pieces[r], n * size);
      else
        add_to(to, c->comm->shared->pieces[r], n, c->type);
    meet(c->comm, c->what);
    at += n;
  }
}

static ncclResult_t begin_rooted(struct rooted rooted, const char *what, cudaStream_t stream) {
  struct collective *c = &rooted.of;
  c->comm = object_of(c->comm, COMM, what);
  snprintf(c->what, sizeof c->what, "%s", what);
  if (rooted.root < 0 || rooted.root >= c->comm->ranks) fault("%s: no rank %d", what, rooted.root);
  memory_require(c->send, c->count * width(c->type), DEVICE, what);
  memory_require(c->receive, c->count * width(c->type), DEVICE, what);
  if (call(what)) return ncclUnhandledCudaError;
  submit(stream, what, run_rooted, &rooted, sizeof rooted);
  return ncclSuccess;
}

ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  if (op != ncclSum) fault("ncclReduce of another kind than a sum");
  return begin_rooted((struct rooted){{comm, "", send, receive, count, type, op}, root}, "ncclReduce", stream);
}

ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return begin_rooted((struct rooted){{comm, "", send, receive, count, type, 0}, root}, "ncclBroadcast", stream);
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  *count = ((struct ncclComm *)object_of(comm, COMM, "ncclCommCount"))->ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *rank = ((struct ncclComm *)object_of(comm, COMM, "ncclCommUserRank"))->rank;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) {
  call("ncclGroupStart");
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  call("ncclGroupEnd");
  return ncclSuccess;
}
