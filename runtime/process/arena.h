/* The one block of memory that a program computes in. */
#ifndef RUNTIME_PROCESS_ARENA_H
#define RUNTIME_PROCESS_ARENA_H

#include "runtime/base/problem.h"

#include <stddef.h>

struct arena {
  void *base; /* aligned to 2 MiB, zeroed */
  size_t bytes;
  void *mapping; /* what the system gave, for unmapping */
  size_t mapped;
};

/* Reserves address space; the system backs a page with zeroed memory when it is first touched. */
bool rt_arena_open(struct arena *arena, size_t bytes, struct problem *problem);

void rt_arena_close(struct arena *arena);

#endif
