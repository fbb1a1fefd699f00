#include "gen/provenance/manifest.h"

#include <string.h>

const char *manifest_path(struct arena *arena, const char *program) {
  size_t length = strlen(program);
  bool is_c = length > 2 && strcmp(program + length - 2, ".c") == 0;
  return arena_printf(arena, "%.*s.manifest.json", (int)(is_c ? length - 2 : length), program);
}

void manifest_add(struct arena *arena, struct manifest_list *list, const char *text) {
  list->items = arena_grow(arena, list->items, list->count, &list->capacity, sizeof *list->items);
  list->items[list->count++] = text;
}

bool manifest_has_key(const struct manifest_line *line, int key) {
  for (int i = 0; i < line->n_keys; i++)
    if (line->keys[i] == key) return true;
  return false;
}
