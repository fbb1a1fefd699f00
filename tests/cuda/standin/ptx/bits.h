/* Values of which some bits are there and others not, as a half of a register that nothing was moved to. A bit without
 * a value is open. Operations that move bits, or do not use some, say which bits of their result are open; those that
 * do not say it give a result that is open as a whole. */
#ifndef TESTS_CUDA_PTX_BITS_H
#define TESTS_CUDA_PTX_BITS_H

#include "tests/cuda/standin/ptx/warp.h"

/* The open bits of an operation's results, a word a lane. */
struct open_bits {
  uint64_t of[VECTOR][LANES];
};

/* The rule of a plain operation by its name, "prmt.b32"; NULL: its result is open as a whole. */
bits_open *bits_rule(const char *name);

/* Open bits of a register in a lane; a predicate has all of them or none. */
uint64_t bits_of_register(const struct warp *warp, struct slot slot, unsigned bytes, int lane);

/* Before a plain operation: what is open of its results in lanes in which an operand has not all of its value. */
void bits_find(const struct warp *warp, const struct instruction *of, uint32_t lanes, struct open_bits *found);

/* After it: takes note of that. */
void bits_keep(struct warp *warp, const struct instruction *of, uint32_t lanes, const struct open_bits *found);

#endif
