#include "gen/plan/memory/storage_names.h"

#include <string.h>

#include "gen/ir/names.h"
#include "gen/plan/memory/layout.h"

static bool has_storage(const struct function *function, const char *name) {
  for (int i = 0; i < function->storages.count; i++)
    if (strcmp(function->storages.items[i]->name, name) == 0) return true;
  return false;
}

/* Whether memory is a function's own, or stores values for its deferred statements. */
static bool is_own(const struct function *function, const struct storage *storage) {
  if (storage->function == function) return true;
  return function->deferred != NULL && storage->function == function->forward &&
         storage->value->region == function->region;
}

static void name_after(struct program *program, const struct function *function, const struct value *value) {
  struct storage *storage = view_of(program, value)->storage;
  if (storage == NULL || storage->value == NULL || !is_own(function, storage)) return;
  if (storage->kind != STORAGE_SAVED && storage->kind != STORAGE_SCRATCH) return; /* callers know its name */
  if (viewed_value(value) != viewed_value(storage->value)) return;                /* it comes there later, in place */
  bool takes = is_operation_name(program->arena, storage->name) && !is_operation_name(program->arena, value->name);
  if (takes && !has_storage(storage->function, value->name)) storage->name = value->name;
}

/* From what is computed on: in a backward, gradients of what was computed first come last. */
static void name_of_function(struct program *program, const struct function *function) {
  const struct node_list *nodes = &function->region->nodes;
  bool backward = function->region->forward != NULL;
  for (int i = 0; i < nodes->count; i++) {
    const struct node *node = nodes->items[backward ? nodes->count - 1 - i : i];
    for (int k = 0; k < node->n_outputs; k++) name_after(program, function, node->outputs[k]);
  }
}

void name_storages(struct program *program) {
  for (int i = 0; i < program->functions.count; i++) name_of_function(program, program->functions.items[i]);
}
