/* Operations: the launches that one function of a program makes. What its kernels leave for each other, as partial
 * sums, is in memory that all operations share, and of no meaning to the next one. */
#ifndef TESTS_CUDA_PTX_OPERATIONS_H
#define TESTS_CUDA_PTX_OPERATIONS_H

#include "tests/cuda/standin/ptx/races.h"
#include "tests/cuda/standin/ptx/warp.h"

/* Where operations keep what is theirs alone. */
void operations_keep(const void *from, size_t bytes);

/* A launch of the operation of this number begins; 0: of none that is known. */
void operations_launch(uint32_t number);

/* A lane, or lanes from this one on, access a row of bytes for the first time in the launch. A fault where an operation
 * that leaves something there reads what it has not left. */
void check_kept(struct warp *warp, const struct instruction *of, int lane, uint64_t address, unsigned bytes,
                enum access access);

#endif
