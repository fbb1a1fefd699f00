/* NCCL's collectives: sums are added up in the order of the ranks. */
#include "tests/cuda/standin/nccl.h"

#include "runtime/base/half.h"

#include <stdio.h>
#include <string.h>

struct collective {
  struct ncclComm *comm;
  char what[24];
  const void *send;
  void *receive;
  size_t count; /* of what a rank gives to all-reduce and all-gather, and gets of reduce-scatter */
  ncclDataType_t type;
  ncclRedOp_t sum;
};

size_t nccl_width(ncclDataType_t type) {
  static const size_t widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  if ((unsigned)type >= sizeof widths / sizeof *widths) fault("a collective of the type %d", (int)type);
  return widths[type];
}

static void largest_of(void *largest, const void *other, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (((const int64_t *)other)[i] > ((int64_t *)largest)[i]) ((int64_t *)largest)[i] = ((const int64_t *)other)[i];
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

/* Moves one chunk of at most CHUNK bytes: sums[first, n] of all ranks to `to`, or each rank's to its position. */
static void move(const struct collective *c, size_t first, size_t n, bool sums, char *to, size_t position_bytes) {
  struct ncclComm *comm = c->comm;
  size_t size = nccl_width(c->type);
  if (c->send != NULL) memcpy(comm->shared->chunks[comm->rank], (const char *)c->send + first * size, n * size);
  nccl_meet(comm, c->what);
  for (int r = 0; r < comm->ranks && to != NULL; r++) {
    const char *chunk = comm->shared->chunks[r];
    if (!sums)
      memcpy(to + (size_t)r * position_bytes, chunk, n * size);
    else if (r == 0)
      memcpy(to, chunk, n * size);
    else if (c->sum == ncclMax)
      largest_of(to, chunk, n);
    else
      add_to(to, chunk, n, c->type);
  }
  nccl_meet(comm, c->what);
}

static void run_collective(const void *arguments) {
  const struct collective *c = arguments;
  size_t size = nccl_width(c->type), at_once = CHUNK / size, ranks = (size_t)c->comm->ranks;
  bool gathers = strcmp(c->what, "ncclAllGather") == 0, scatters = strcmp(c->what, "ncclReduceScatter") == 0;
  size_t given = c->count * (scatters ? ranks : 1), got = c->count * (gathers ? ranks : 1);
  touch(c->send, given * size, false);
  touch(c->receive, got * size, true);
  nccl_ask(c->comm, c->what, c->count, c->type, c->sum);
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
  memory_require(c.send, given * nccl_width(c.type), DEVICE, what);
  memory_require(c.receive, got * nccl_width(c.type), DEVICE, what);
  if (call(what)) return ncclUnhandledCudaError;
  submit(stream, what, run_collective, &c, sizeof c);
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  if (op != ncclSum && (op != ncclMax || type != ncclInt64))
    fault("ncclAllReduce of another kind than a sum, or the largest of int64");
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

/* One rank's chunk, or one rank's sum: `root` is part of what all must ask for alike. */
struct rooted {
  struct collective of;
  int root;
};

static void run_rooted(const void *arguments) {
  const struct rooted *rooted = arguments;
  const struct collective *c = &rooted->of;
  size_t size = nccl_width(c->type), at_once = CHUNK / size;
  bool sums = strcmp(c->what, "ncclReduce") == 0, is_root = c->comm->rank == rooted->root;
  if (sums || is_root) touch(c->send, c->count * size, false);
  if (!sums || is_root) touch(c->receive, c->count * size, true);
  nccl_ask(c->comm, c->what, c->count, c->type, rooted->root);
  for (size_t at = 0; at < c->count;) {
    size_t n = c->count - at < at_once ? c->count - at : at_once;
    char *to = (char *)c->receive + at * size;
    memcpy(c->comm->shared->chunks[c->comm->rank], (const char *)c->send + at * size, n * size);
    nccl_meet(c->comm, c->what);
    if (!sums) memcpy(to, c->comm->shared->chunks[rooted->root], n * size);
    for (int r = 0; r < c->comm->ranks && sums && is_root; r++)
      if (r == 0)
        memcpy(to, c->comm->shared->chunks[r], n * size);
      else
        add_to(to, c->comm->shared->chunks[r], n, c->type);
    nccl_meet(c->comm, c->what);
    at += n;
  }
}

static ncclResult_t begin_rooted(struct rooted rooted, const char *what, cudaStream_t stream) {
  struct collective *c = &rooted.of;
  c->comm = object_of(c->comm, COMM, what);
  snprintf(c->what, sizeof c->what, "%s", what);
  if (rooted.root < 0 || rooted.root >= c->comm->ranks) fault("%s: no rank %d", what, rooted.root);
  memory_require(c->send, c->count * nccl_width(c->type), DEVICE, what);
  memory_require(c->receive, c->count * nccl_width(c->type), DEVICE, what);
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
