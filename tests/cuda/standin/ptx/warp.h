/* A launch as it is interpreted: blocks of warps of 32 lanes, which are executed one instruction of a warp after the
 * other. Lanes of a warp that are at different instructions are groups; the group that is at the first of these in the
 * program continues, so that they meet again where the paths join. */
#ifndef TESTS_CUDA_PTX_WARP_H
#define TESTS_CUDA_PTX_WARP_H

#include <string.h>

#include "tests/cuda/standin/ptx/program.h"
#include "tests/cuda/standin/ptx/races.h"

enum { MOST_THREADS = 1024, MOST_WARPS = MOST_THREADS / LANES, BARRIERS = 16 };

/* Generic addresses of memory of a block and of a thread, which no address of the host is. */
#define SHARED_WINDOW (UINT64_C(1) << 56)
#define LOCAL_WINDOW (UINT64_C(2) << 56)

/* Lanes at an instruction. */
struct group {
  unsigned at;
  uint32_t lanes;
  bool waits; /* for lanes of other groups */
};

/* What an array is that a kernel was given the address of. */
struct extent {
  uint64_t from, to;       /* 0: nothing that is known */
  uint64_t or_from, or_to; /* or this, if it is more than nothing */
};

/* When a block of a launch has begun. */
struct begun {
  uint32_t time, number;
};

struct launch {
  struct kernel *kernel;
  uint32_t grid[3], block[3];
  const char *parameters;
  size_t shared_bytes;
  uint32_t first_time; /* of its blocks, in the touches of the device's memory */
  struct begun *begun; /* its blocks so far */
  uint32_t n_begun;
  struct extent *extents; /* of each word of 8 bytes of the parameters */
};

struct block {
  struct launch *launch;
  uint32_t index[3], number;
  char *shared;
  struct touch *cells;  /* of each 2 bytes of `shared` */
  uint32_t begin, time; /* counts of barriers when it began, and now */
  struct warp *warps;
  unsigned n_warps;
};

/* A copy to shared memory that has begun (cp.async). */
struct copying {
  char bytes[16];
  uint32_t to;
  unsigned char size, lane;
  unsigned group; /* 0: none yet */
  const struct instruction *of;
};

struct warp {
  struct block *block;
  unsigned number; /* in its block */
  char *registers;
  uint32_t *defined;      /* of each register, the lanes that it has a value of, all of its bits */
  uint32_t *partly;       /* of those that are not, the lanes that some bits have a value of */
  uint64_t *open;         /* and the other bits, a word for each lane of each register; NULL: there were none yet */
  uint32_t exists, alive; /* lanes that the block has; those that have not ended */
  uint32_t active;        /* those that execute the present instruction */
  uint32_t carry;         /* CC.CF */
  struct group groups[LANES];
  unsigned n_groups;
  uint32_t time; /* counts what its lanes have waited for each other at */
  char *local, *local_written;
  bool is_at_barrier;
  uint32_t barrier, barrier_count; /* its number; its threads, 0: all of the block */
  uint32_t vote;                   /* what the lanes bring to it */
  struct copying *copying;
  unsigned n_copying, copying_capacity, copy_groups;
};

/* ---- Operands ---- */

static inline const void *from_of(const struct warp *warp, const struct instruction *of, int number) {
  return warp->registers + of->from[number].at;
}

static inline void *to_of(struct warp *warp, const struct instruction *of, int number) {
  return warp->registers + of->to[number].at;
}

/* A predicate: a bit a lane. */
static inline uint32_t predicate(const struct warp *warp, struct slot slot) {
  uint32_t found;
  memcpy(&found, warp->registers + slot.at, sizeof found);
  return slot.negated ? ~found : found;
}

/* mov between a register and the parts of it. */
void run_pack(struct warp *warp, const struct instruction *of);

/* ---- Execution ---- */

/* Addresses of an operand. */
void addresses_of(const struct warp *warp, const struct instruction *of, const struct place *place, uint64_t *made);

/* Runs all blocks of a launch. */
void launch_run(struct launch *launch);

/* Runs the collective that the warp is at, whose lanes are there: warp->active. */
void collective_run(struct warp *warp, const struct instruction *of);

/* Which lanes a collective waits for. */
uint32_t collective_lanes(const struct warp *warp, const struct instruction *of);

/* Whether a collective is a barrier of the block, which the block's loop runs: what a warp brings, and what it takes
 * with it, of `count` threads that came and `voted` that brought true. */
bool collective_is_barrier(const struct instruction *of);
void barrier_arrive(struct warp *warp, const struct instruction *of);
void barrier_leave(struct warp *warp, const struct instruction *of, uint32_t count, uint32_t voted);

#endif
