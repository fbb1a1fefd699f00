#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "runtime/process/arena.h"

#include "runtime/process/fail.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t huge_page = (size_t)2 << 20;

/* Address space is given freely; the memory for it may not be there, and then the system kills without a word. */
static void warn_of_size(size_t bytes) {
  double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  if (memory > 0 && (double)bytes > memory)
    rt_warn("the arena takes %.1f GiB, this machine has %.1f GiB of memory", (double)bytes / 0x1p30, memory / 0x1p30);
}

bool rt_arena_open(struct arena *arena, size_t bytes, struct problem *problem) {
  *arena = (struct arena){.bytes = bytes, .mapped = bytes + huge_page};
  if (arena->mapped < bytes) return rt_problem(problem, "the arena of %zu bytes is beyond the address space", bytes);
  arena->mapping = mmap(NULL, arena->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (arena->mapping == MAP_FAILED) {
    arena->mapping = NULL;
    rt_problem(problem, "the arena of %.1f MiB could not be reserved: %s", (double)bytes / (1 << 20), strerror(errno));
    return rt_help(problem, "free memory, raise the limit ('ulimit -v'), or generate a smaller plan "
                            "(data.batch_size, model.config)");
  }
  warn_of_size(bytes);
  uintptr_t start = ((uintptr_t)arena->mapping + huge_page - 1) / huge_page * huge_page;
  arena->base = (void *)start;
#ifdef MADV_HUGEPAGE
  /* Fewer faults at first touch and fewer misses of the address cache; a system without them works as well. */
  (void)madvise(arena->base, bytes, MADV_HUGEPAGE);
#endif
  return true;
}

void rt_arena_close(struct arena *arena) {
  if (arena->mapping != NULL) munmap(arena->mapping, arena->mapped);
  *arena = (struct arena){0};
}
