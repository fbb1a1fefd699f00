/* Which algorithm MPI takes for an all-reduce, where its own choice is slow. */
#ifndef RUNTIME_MPI_ALGORITHM_H
#define RUNTIME_MPI_ALGORITHM_H

#include <stddef.h>

/* Before each all-reduce of `bytes` that is concurrent with other work, on all `ranks` alike. Short ones by recursive
 * doubling; long ones by Rabenseifner's halving and doubling among a power of two ranks, else by a ring. Open MPI's own
 * choice in place is a tree to one rank and back, each message with all bytes. Other MPIs choose themselves. */
void rt_choose_all_reduce(size_t bytes, int ranks);

#endif
