/* What a GPU does not check: each function ends the process where a rule is broken, with what is wrong there. */
#ifndef TESTS_CUDA_PTX_CHECKS_H
#define TESTS_CUDA_PTX_CHECKS_H

#include "tests/cuda/standin/ptx/races.h"
#include "tests/cuda/standin/ptx/warp.h"

/* Ends the process with what is wrong at an instruction, in a lane or, -1, in the warp. */
_Noreturn void wrong(const struct warp *warp, const struct instruction *of, int lane, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Begins a launch: the time of its blocks in the device's memory; and ends it, at a time of its last block. */
void checks_begin(struct launch *launch);
void checks_end(const struct launch *launch, uint32_t time);

/* A variable of a module, which is in no allocation. */
void checks_know(const void *address, size_t bytes);

/* The active lanes read or write `bytes` each at addresses of the host. A fault where that is outside of what the
 * address was derived from, was never written, or is what another thread of the launch writes, or reads what this one
 * writes, without an order of both (races.h). */
void check_global(struct warp *warp, const struct instruction *of, const struct place *place, const uint64_t *addresses,
                  unsigned bytes, enum access access);

/* The same in shared memory, where the other threads are those of the block, and barriers order them. */
void check_shared(struct warp *warp, const struct instruction *of, const uint64_t *addresses, unsigned bytes,
                  enum access access);

/* Addresses of shared memory are within the array of the block that they derive from. */
void check_arrays(const struct warp *warp, const struct instruction *of, const struct place *place,
                  const uint64_t *addresses, unsigned bytes);

/* As check_shared, in a thread's own memory, which no other one sees. */
void check_local(struct warp *warp, const struct instruction *of, const uint64_t *addresses, unsigned bytes,
                 enum access access);

/* The lanes in which a plain operation's result has a value: compilers compute with what has none, and do not use it.
 */
uint32_t lanes_known(const struct warp *warp, const struct instruction *of);

/* An operand that has no value in an active lane is a fault: where it is stored, is an address, or decides something.
 */
void check_defined(const struct warp *warp, const struct instruction *of);

#endif
