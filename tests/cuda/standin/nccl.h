/* What the stand-in of NCCL shares: communicators, and meeting in them. */
#ifndef TESTS_CUDA_NCCL_H
#define TESTS_CUDA_NCCL_H

#include "tests/cuda/standin/core.h"

#include <nccl.h>
#include <stdatomic.h>

enum { RANKS = 64, CHUNK = 1 << 16, MAIL = 1 << 24 };

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
  char chunks[RANKS][CHUNK];
  atomic_ullong posted, taken; /* bytes of messages outside of groups, of one rank to the other of two */
  char mail[MAIL];
};

struct ncclComm {
  struct shared *shared;
  int rank, ranks, barriers;
  uint64_t number; /* of collectives so far */
  int sends;       /* of two ranks, outside of groups: 1, -1 for the one that receives, 0 before the first message */
  char name[64];
};

/* Waits until all ranks of the communicator are here; `what` is what they do. */
void nccl_meet(struct ncclComm *comm, const char *what);

/* Waits until a counter is `wanted` or more. */
void nccl_await(struct ncclComm *comm, const atomic_ullong *counter, unsigned long long wanted, const char *what);

/* The bytes of a value. */
size_t nccl_width(ncclDataType_t type);

/* Compares what all ranks ask for. */
void nccl_ask(struct ncclComm *comm, const char *what, size_t count, int type, int sum);

#endif
