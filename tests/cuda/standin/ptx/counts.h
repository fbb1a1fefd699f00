/* What the instructions of kernels cost: how often warps executed each of them, with how many lanes, and what its
 * accesses demand of memory. STANDIN_COUNTS=FILE gets a line for each instruction that was executed, in the end. */
#ifndef TESTS_CUDA_PTX_COUNTS_H
#define TESTS_CUDA_PTX_COUNTS_H

#include "tests/cuda/standin/ptx/warp.h"

/* Of one instruction of a kernel. */
struct count {
  uint64_t warps, lanes;    /* how often it was executed */
  uint64_t diverged;        /* of a branch: lanes of a warp went both ways */
  uint64_t requests, bytes; /* of memory; the bytes of all lanes */
  uint64_t pieces;          /* sectors of 32 bytes of the device's memory; turns at the banks of shared memory */
  uint64_t least;           /* as many would do for what is asked for */
};

/* Counts a kernel from its first launch on, if the environment asks for it. */
void counts_launch(struct launch *launch);

/* An access of the active lanes to addresses of a space, `bytes` each. */
void counts_access(const struct warp *warp, const struct instruction *of, enum space space, const uint64_t *addresses,
                   unsigned bytes);

/* The counts of an instruction; NULL: nothing is counted. */
static inline struct count *count_of(const struct kernel *kernel, const struct instruction *of) {
  return kernel->counts == NULL ? NULL : &kernel->counts[of - kernel->code.items];
}

#endif
