#include "gen/jinja/pool.h"

#include <string.h>

struct chunk {
  struct chunk *next;
  size_t size;
  char *bytes;
};

enum { CHUNK_BYTES = 1 << 16 };

struct pool jj_pool_direct(struct arena *arena) {
  return (struct pool){.arena = arena, .direct = 1};
}

static void enter(struct pool *pool, struct chunk *chunk) {
  pool->current = chunk;
  pool->next = chunk != NULL ? chunk->bytes : NULL;
  pool->end = chunk != NULL ? chunk->bytes + chunk->size : NULL;
}

void jj_pool_reset(struct pool *pool) {
  pool->taken = 0;
  enter(pool, pool->first);
}

static struct chunk *new_chunk(struct pool *pool, size_t size) {
  struct chunk *chunk = arena_alloc(pool->arena, sizeof *chunk);
  chunk->size = size > CHUNK_BYTES ? size : CHUNK_BYTES;
  chunk->bytes = arena_alloc(pool->arena, chunk->size);
  return chunk;
}

void *jj_pool_more(struct pool *pool, size_t size) {
  if (pool->direct) return arena_alloc(pool->arena, size);
  pool->taken += (int64_t)size > CHUNK_BYTES ? (int64_t)size : CHUNK_BYTES;
  if (pool->limit > 0 && pool->taken > pool->limit) pool->exhausted(pool->owner);
  struct chunk **link = pool->current != NULL ? &pool->current->next : &pool->first;
  while (*link != NULL && (*link)->size < size) link = &(*link)->next;
  if (*link == NULL) *link = new_chunk(pool, size);
  enter(pool, *link);
  void *memory = pool->next;
  pool->next += size;
  return memory;
}

void *jj_alloc_zero(struct pool *pool, size_t size) {
  void *memory = jj_alloc(pool, size);
  return memset(memory, 0, size);
}
