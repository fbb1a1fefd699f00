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

static bool is_saved(const struct view *view) {
  return view->storage != NULL && storage_root(view->storage)->kind == STORAGE_SAVED;
}

static bool uses_saved(const struct function *function) {
  for (int i = 0; i < function->n_steps; i++) {
    const struct step *step = &function->steps[i];
    if (step->callee != NULL && takes_saved(step->callee)) return true;
    for (int k = 0; k < step->node->n_inputs; k++)
      if (is_saved(&step->inputs[k])) return true;
    for (int k = 0; k < step->node->n_outputs; k++)
      if (is_saved(&step->outputs[k])) return true;
  }
  return false;
}

bool takes_saved(const struct function *function) {
  if (saving_function(function)->saved_bytes == 0) return false;
  return function->forward != NULL || function->staged || uses_saved(function);
}

int stacked_copy(const struct view *view, int iteration) {
  return iteration + (int)(view->offset / view->storage->count);
}
