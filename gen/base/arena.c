#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "gen/base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct block {
  struct block *next;
  size_t used, size;
  size_t mapped; /* bytes of the mapping that it is; 0: it is of the heap */
  alignas(max_align_t) char bytes[];
};

struct arena {
  struct block *blocks;
  struct block *spare; /* empty, to be used next; NULL: none */
  bool shared;         /* one block, which does not grow */
};

/* Large enough that the system gives it as fresh pages, which are zero and cost nothing until they are used. */
enum { BLOCK_BYTES = 1 << 22 };

static void *take(size_t size) {
  void *memory = calloc(1, size);
  if (memory == NULL) {
    fprintf(stderr, "accel-gen: out of memory (%zu bytes)\n", size);
    exit(1);
  }
  return memory;
}

struct arena *arena_new(void) {
  return take(sizeof(struct arena));
}

struct arena *arena_shared(size_t size) {
  size_t mapped = sizeof(struct block) + size;
  /* Pages cost nothing until they are used. */
  void *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  struct arena *arena = arena_new();
  arena->shared = true;
  arena->blocks = memory;
  arena->blocks->size = size;
  arena->blocks->mapped = mapped;
  return arena;
}

void arena_join(struct arena *arena, struct arena *shared) {
  struct block *block = shared->blocks, **last = &arena->blocks;
  free(shared);
  size_t page = (size_t)sysconf(_SC_PAGESIZE), used = sizeof *block + block->used;
  size_t retained = (used + page - 1) / page * page;
  if (retained < block->mapped) {
    munmap((char *)block + retained, block->mapped - retained);
    block->mapped = retained;
  }
  block->size = block->used;
  while (*last != NULL) last = &(*last)->next;
  *last = block;
}

static void free_block(struct block *block) {
  if (block->mapped > 0)
    munmap(block, block->mapped);
  else
    free(block);
}

void arena_free(struct arena *arena) {
  if (arena == NULL) return;
  for (struct block *block = arena->blocks; block != NULL;) {
    struct block *next = block->next;
    free_block(block);
    block = next;
  }
  if (arena->spare != NULL) free_block(arena->spare);
  free(arena);
}

static void empty(struct block *block, size_t used) {
  memset(block->bytes + used, 0, block->used - used);
  block->used = used;
}

static void give_back(struct arena *arena, struct block *block) {
  if (arena->spare != NULL || block->size != BLOCK_BYTES || block->mapped > 0) {
    free_block(block);
    return;
  }
  empty(block, 0);
  block->next = NULL;
  arena->spare = block;
}

void arena_reset(struct arena *arena) {
  for (struct block *block = arena->blocks, *next; block != NULL; block = next) {
    next = block->next;
    give_back(arena, block);
  }
  arena->blocks = NULL;
}

struct arena_mark arena_mark(const struct arena *arena) {
  return (struct arena_mark){arena->blocks, arena->blocks != NULL ? arena->blocks->used : 0};
}

void arena_release(struct arena *arena, struct arena_mark mark) {
  while (arena->blocks != mark.block) {
    struct block *block = arena->blocks;
    arena->blocks = block->next;
    give_back(arena, block);
  }
  if (arena->blocks != NULL) empty(arena->blocks, mark.used);
}

static struct block *new_block(struct arena *arena, size_t size) {
  struct block *block = arena->spare;
  if (block != NULL && size <= block->size) {
    arena->spare = NULL;
  } else {
    const size_t capacity = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    block = take(sizeof *block + capacity);
    block->size = capacity;
  }
  block->next = arena->blocks;
  arena->blocks = block;
  return block;
}

void *arena_alloc(struct arena *arena, size_t size) {
  const size_t align = alignof(max_align_t);
  size = (size + align - 1) / align * align;
  struct block *block = arena->blocks;
  if (block == NULL || block->size - block->used < size) {
    if (arena->shared) _exit(ARENA_FULL); /* with exit, a fork would write what the process has not yet written */
    block = new_block(arena, size);
  }
  void *memory = block->bytes + block->used;
  block->used += size;
  return memory;
}

char *arena_copy(struct arena *arena, const void *bytes, size_t count) {
  char *copy = arena_alloc(arena, count + 1);
  if (count > 0) memcpy(copy, bytes, count);
  return copy;
}

char *arena_string(struct arena *arena, const char *text) {
  return arena_copy(arena, text, strlen(text));
}

char *arena_vprintf(struct arena *arena, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = arena_alloc(arena, (size_t)length + 1);
  vsnprintf(text, (size_t)length + 1, format, args);
  return text;
}

char *arena_printf(struct arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = arena_vprintf(arena, format, args);
  va_end(args);
  return text;
}

void *arena_grow(struct arena *arena, void *items, int count, int *capacity, size_t item_size) {
  if (count < *capacity) return items;
  int wider = *capacity > 0 ? *capacity * 2 : 8;
  void *copy = arena_alloc(arena, (size_t)wider * item_size);
  if (count > 0) memcpy(copy, items, (size_t)count * item_size);
  *capacity = wider;
  return copy;
}
