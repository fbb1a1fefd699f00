#include "gen/provenance/manifest.h"

#include "gen/base/path.h"

const char *manifest_path(struct arena *arena, const char *program) {
  const char *stem = without_ending(arena, program, ".c");
  return arena_printf(arena, "%s.manifest.json", stem != NULL ? stem : program);
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

const char *locations_text(struct arena *arena, const struct manifest *manifest, const struct manifest_line *line) {
  struct text text = text_in(arena);
  if (line->templates.count > 0) text_puts(&text, name_in_folder(line->templates.items[0]));
  if (line->model.count > 0) text_printf(&text, ", %s", name_in_folder(line->model.items[0]));
  if (line->n_keys == 1) text_printf(&text, ", %s", manifest->keys[line->keys[0]].key);
  if (line->n_keys > 1) text_printf(&text, ", %d keys", line->n_keys);
  return text_string(&text);
}

static void add_list(struct text *text, const char *word, const struct manifest_list *list) {
  for (int i = 0; i < list->count; i++) text_printf(text, "%s%s", i == 0 ? word : ", ", list->items[i]);
  if (list->count > 0) text_puts(text, "\n");
}

const char *origins_text(struct arena *arena, const struct manifest *manifest, const struct manifest_line *line) {
  struct text text = text_in(arena);
  add_list(&text, "template ", &line->templates);
  add_list(&text, "from ", &line->callers);
  add_list(&text, "model ", &line->model);
  for (int i = 0; i < line->n_keys; i++) {
    const struct manifest_key *key = &manifest->keys[line->keys[i]];
    text_printf(&text, "%s = %s\n", key->key, key->value);
  }
  return text_string(&text);
}
