/* Pool: the memory of one rendering. It is a bump allocator over chunks from the environment's arena; the chunks are
 * used again by the next rendering, so a template that is rendered a thousand times takes the memory of one. */
#ifndef ACCEL_JINJA_POOL_H
#define ACCEL_JINJA_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "gen/base/arena.h"

struct chunk;

struct pool {
  char *next, *end;
  struct arena *arena;
  struct chunk *first, *current; /* NULL and `direct`: every piece comes straight from the arena */
  int direct;
  int64_t taken, limit;           /* bytes in chunks handed out since the reset; 0: no limit */
  void (*exhausted)(void *owner); /* called past the limit; does not return */
  void *owner;
};

/* A pool whose pieces live as long as the arena: for values made outside of a rendering. */
struct pool jj_pool_direct(struct arena *arena);

/* Takes all pieces back; the chunks stay for the next use. */
void jj_pool_reset(struct pool *pool);

/* The slow path of jj_alloc: a new or an old chunk. */
void *jj_pool_more(struct pool *pool, size_t size);

/* `size` bytes, aligned to 16, not zeroed. */
static inline void *jj_alloc(struct pool *pool, size_t size) {
  size = (size + 15) & ~(size_t)15;
  if ((size_t)(pool->end - pool->next) < size || pool->next == NULL) return jj_pool_more(pool, size);
  void *memory = pool->next;
  pool->next += size;
  return memory;
}

/* `size` zeroed bytes. */
void *jj_alloc_zero(struct pool *pool, size_t size);

#endif
