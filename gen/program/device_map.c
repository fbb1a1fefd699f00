#include "gen/program/device_map.h"

#include <string.h>

int device_map_place(const struct device_map *map, const char *name) {
  size_t longest = 0;
  int place = -1;
  for (int i = 0; i < map->count; i++) {
    const char *own = map->items[i].module->name;
    const size_t length = strlen(own);
    const bool has = length == 0 || (strncmp(own, name, length) == 0 && (name[length] == '.' || name[length] == '\0'));
    if (!has || (place >= 0 && length < longest)) continue;
    longest = length;
    place = map->items[i].place;
  }
  return place;
}

const struct place *device_map_elsewhere(const struct device_map *map, const char *name) {
  const int place = device_map_place(map, name);
  return place >= 0 && !map->places.items[place].is_own ? &map->places.items[place] : NULL;
}

struct module *module_child(struct arena *arena, struct module *parent, const char *name, enum module_kind kind) {
  const char *whole = parent->name[0] != '\0' ? arena_printf(arena, "%s.%s", parent->name, name) : name;
  for (int i = 0; i < parent->n_children; i++)
    if (strcmp(parent->children[i]->name, whole) == 0) return parent->children[i];
  struct module *child = arena_alloc(arena, sizeof *child);
  *child = (struct module){.name = whole, .kind = kind, .parent = parent};
  parent->children =
      arena_grow(arena, parent->children, parent->n_children, &parent->capacity, sizeof(struct module *));
  return parent->children[parent->n_children++] = child;
}

void module_add_tensor(struct module *tensor, int64_t bytes, const struct module *tied) {
  tensor->tied = tied;
  for (struct module *m = tensor; m != NULL && tied == NULL; m = m->parent) m->bytes += bytes;
}

bool module_is_within(const struct module *module, const struct module *within) {
  while (module != NULL && module != within) module = module->parent;
  return module != NULL;
}
