#include "gen/program/storage.h"

enum { ALIGNMENT = 64 };

int64_t arena_aligned(int64_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int64_t storage_bytes(const struct storage *storage) {
  return storage->count * storage->copies * dtype_size(storage->dtype);
}

struct storage *storage_root(struct storage *storage) {
  while (storage->shared != NULL) storage = storage->shared;
  return storage;
}

struct storage *own_frame(const struct function *function, const struct node *call) {
  for (int i = 0; i < function->storages.count; i++)
    if (function->storages.items[i]->call == call) return function->storages.items[i];
  return NULL;
}

struct storage *frame_of(const struct function *function, const struct node *call) {
  struct storage *frame = own_frame(function, call);
  return frame == NULL && function->forward != NULL ? own_frame(function->forward, call) : frame;
}

const struct function *saving_function(const struct function *function) {
  return function->forward != NULL ? function->forward : function;
}

bool is_deferred(const struct function *function) {
  return function->forward != NULL && function->forward->backward != function;
}

bool takes_result(const struct function *function, int index) {
  return !is_deferred(function) || function->reads_results[index];
}

int stacked_copy(const struct view *view, int iteration) {
  return iteration + (int)(view->offset / view->storage->count);
}
