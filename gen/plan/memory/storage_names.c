#include "gen/plan/memory/storage_names.h"

#include <ctype.h>
#include <string.h>

#include "gen/ir/op.h"
#include "gen/plan/memory/layout.h"

/* Whether a value has no name but its operation's, as reshape_2, or as the gradient of such a value, d_reshape_2. */
static bool is_unnamed(struct arena *arena, const char *name) {
  while (strncmp(name, "d_", 2) == 0) name += 2;
  size_t length = strlen(name), digits = 0;
  while (digits < length && isdigit((unsigned char)name[length - digits - 1])) digits++;
  if (digits > 0 && digits < length && name[length - digits - 1] == '_') length -= digits + 1;
  return op_kind_find(arena_copy(arena, name, length)) != NULL;
}

static bool has_storage(const struct function *function, const char *name) {
  for (int i = 0; i < function->storages.count; i++)
    if (strcmp(function->storages.items[i]->name, name) == 0) return true;
  return false;
}

static void name_after(struct program *program, const struct function *function, const struct value *value) {
  struct storage *storage = view_of(program, value)->storage;
  if (storage == NULL || storage->function != function || storage->value == NULL) return;
  if (storage->kind != STORAGE_SAVED && storage->kind != STORAGE_SCRATCH) return; /* callers know its name */
  if (viewed_value(value) != viewed_value(storage->value)) return;                /* it comes there later, in place */
  bool takes = is_unnamed(program->arena, storage->name) && !is_unnamed(program->arena, value->name);
  if (takes && !has_storage(function, value->name)) storage->name = value->name;
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
