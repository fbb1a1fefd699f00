#include "runtime/values/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, BLOCK = 1 << 16, LONGEST_MESSAGE = 4096 };

struct block {
  struct block *next;
  size_t size, used;
  char *bytes; /* aligned */
};

struct accel_store {
  struct block *blocks; /* the one that is filled comes first */
  char error[LONGEST_MESSAGE];
};

struct accel_store *accel_store_new(void) {
  return calloc(1, sizeof(struct accel_store));
}

void accel_store_clear(struct accel_store *store) {
  struct block *block = store->blocks;
  while (block != NULL) {
    struct block *next = block->next;
    free(block->bytes);
    free(block);
    block = next;
  }
  store->blocks = NULL;
  store->error[0] = '\0';
}

void accel_store_free(struct accel_store *store) {
  if (store == NULL) return;
  accel_store_clear(store);
  free(store);
}

const char *accel_store_error(const struct accel_store *store) {
  return store->error[0] != '\0' ? store->error : NULL;
}

void *rt_store_fail(struct accel_store *store, const char *format, ...) {
  va_list arguments;
  if (store == NULL || store->error[0] != '\0') return NULL;
  va_start(arguments, format);
  vsnprintf(store->error, sizeof store->error, format, arguments);
  va_end(arguments);
  return NULL;
}

static struct block *new_block(size_t size) {
  struct block *block = calloc(1, sizeof *block);
  char *bytes = aligned_alloc(ALIGNMENT, size);
  if (block == NULL || bytes == NULL) {
    free(block);
    free(bytes);
    return NULL;
  }
  *block = (struct block){.size = size, .bytes = bytes};
  return block;
}

void *rt_store_take(struct accel_store *store, size_t size) {
  size_t taken = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  struct block *first = store->blocks;
  if (taken < size) return rt_store_fail(store, "%zu bytes are beyond the address space", size);
  if (first == NULL || first->size - first->used < taken) {
    struct block *block = new_block(taken > BLOCK ? taken : BLOCK);
    if (block == NULL) return rt_store_fail(store, "no memory for %zu bytes", size);
    block->next = first;
    store->blocks = first = block;
  }
  void *bytes = first->bytes + first->used;
  first->used += taken;
  return memset(bytes, 0, taken);
}
