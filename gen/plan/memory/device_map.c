#include "gen/plan/memory/device_map.h"

#include <string.h>

/* ---- The largest layer ---- */

static bool stays_whole(const struct module *module, const struct whole_types *whole) {
  for (int i = 0; i < whole->count; i++)
    if (module->type != NULL && strcmp(module->type, whole->names[i]) == 0) return true;
  return false;
}

static bool can_split(const struct module *module, const struct whole_types *whole) {
  for (int i = 0; i < module->n_children; i++)
    if (module->children[i]->kind == MODULE) return !stays_whole(module, whole);
  return false;
}

static void add(struct arena *arena, struct module_list *list, const struct module *module) {
  ARENA_PUSH(arena, *list, module);
}

/* Tensors of a module that is split are not looked at. */
static void visit_layers(struct arena *arena, const struct module *module, const struct whole_types *whole,
                         int64_t *bytes, struct module_list *names) {
  if (can_split(module, whole)) {
    for (int i = 0; i < module->n_children; i++)
      if (module->children[i]->kind == MODULE) visit_layers(arena, module->children[i], whole, bytes, names);
    return;
  }
  if (module->bytes < *bytes) return;
  if (module->bytes > *bytes) names->count = 0;
  *bytes = module->bytes;
  add(arena, names, module);
}

int64_t largest_layer(struct arena *arena, const struct module_list *list, const struct whole_types *whole,
                      struct module_list *names) {
  int64_t bytes = 0;
  *names = (struct module_list){0};
  for (int i = 0; i < list->count; i++) visit_layers(arena, list->items[i], whole, &bytes, names);
  return bytes;
}

/* ---- Balance ---- */

/* The bytes of the first module of each of these types: the most of them. */
static void visit_types(const struct module *module, const struct whole_types *whole, bool *seen, int64_t *most) {
  for (int i = 0; i < whole->count && module->parent != NULL && module->type != NULL; i++) {
    if (seen[i] || strcmp(module->type, whole->names[i]) != 0 || module->bytes == 0) continue;
    seen[i] = true;
    if (module->bytes > *most) *most = module->bytes;
  }
  for (int i = 0; i < module->n_children; i++)
    if (module->children[i]->kind == MODULE) visit_types(module->children[i], whole, seen, most);
}

/* Modules that have tensors alone: how many, and their bytes. */
static void visit_final(const struct module *module, int64_t *count, int64_t *bytes) {
  bool is_final = true;
  for (int i = 0; i < module->n_children; i++) {
    const struct module *child = module->children[i];
    if (child->kind != MODULE || child->bytes == 0) continue;
    is_final = false;
    visit_final(child, count, bytes);
  }
  if (!is_final || module->parent == NULL) return;
  *count += 1;
  *bytes += module->bytes;
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* What a GPU may take more than its part: a quarter more than the largest type that stays whole, or than the mean of
 * the final modules. */
static int64_t buffer_of(struct arena *arena, const struct module *root, const struct whole_types *whole) {
  bool *seen = arena_alloc(arena, ((size_t)whole->count + 1) * sizeof *seen);
  int64_t most = 0, count = 0, bytes = 0;
  visit_types(root, whole, seen, &most);
  visit_final(root, &count, &bytes);
  const int64_t mean = count > 0 ? bytes / count : 0;
  return (int64_t)(1.25 * (double)(most > mean ? most : mean));
}

void balance_places(struct arena *arena, const struct module *root, const struct whole_types *whole,
                    enum device_map_way way, struct place_list *places) {
  int gpus = 0, last = -1;
  bool low = way == DEVICE_MAP_BALANCED_LOW_0;
  for (int i = 0; i < places->count; i++) {
    if (!places->items[i].is_gpu || places->items[i].bytes == 0) continue;
    gpus++;
    last = i;
  }
  if (way == DEVICE_MAP_SEQUENTIAL || gpus == 0) return;
  low = low && gpus > 1;
  const int64_t each = root->bytes / (low ? gpus - 1 : gpus) + buffer_of(arena, root, whole);
  for (int i = 0; i < last; i++)
    if (places->items[i].is_gpu && !(low && i == 0)) places->items[i].bytes = smaller(each, places->items[i].bytes);
  if (!low) return;
  int64_t others = 0;
  for (int i = 1; i < places->count && i < gpus; i++)
    others = others > PLACE_ENDLESS - places->items[i].bytes ? PLACE_ENDLESS : others + places->items[i].bytes;
  places->items[0].bytes = smaller(root->bytes > others ? root->bytes - others : 0, places->items[0].bytes);
}

/* ---- Filling ---- */

struct filling {
  struct arena *arena;
  const struct whole_types *whole;
  struct device_map *map;
  struct module_list left, tensors; /* to be placed, in order; all parameters */
  struct module_list largest;       /* of what is left, as long as one of them is */
  int64_t largest_bytes, *used;
  int place;
};

static void note_tensors(struct filling *f, const struct module *module) {
  if (module->kind == MODULE_PARAMETER) add(f->arena, &f->tensors, module);
  for (int i = 0; i < module->n_children; i++) note_tensors(f, module->children[i]);
}

/* A module's own parameters, and then its modules. */
static void add_children(struct filling *f, struct module_list *list, const struct module *module) {
  for (int kind = MODULE_PARAMETER; kind >= MODULE; kind--)
    for (int i = 0; i < module->n_children; i++)
      if (module->children[i]->kind == (enum module_kind)kind) add(f->arena, list, module->children[i]);
}

static void find_largest(struct filling *f) {
  struct module_list modules = {0};
  for (int i = 0; i < f->left.count; i++)
    if (f->left.items[i]->kind == MODULE) add(f->arena, &modules, f->left.items[i]);
  f->largest_bytes = largest_layer(f->arena, &modules, f->whole, &f->largest);
}

/* The largest layer is one of what comes after a module: forgets those in it. */
static void leave_largest(struct filling *f, const struct module *module) {
  int count = 0;
  for (int i = 0; i < f->largest.count; i++)
    if (!module_is_within(f->largest.items[i], module)) f->largest.items[count++] = f->largest.items[i];
  f->largest.count = count;
  if (count == 0) find_largest(f);
}

static const struct module *memory_of(const struct module *parameter) {
  return parameter->tied != NULL ? parameter->tied : parameter;
}

/* Whether a parameter outside of a module has the memory of one inside. */
static bool is_tied_to(const struct filling *f, const struct module *parameter, const struct module *module) {
  bool tied = false;
  for (int i = 0; i < f->tensors.count && !module_is_within(parameter, module); i++)
    tied |= module_is_within(f->tensors.items[i], module) && memory_of(f->tensors.items[i]) == memory_of(parameter);
  return tied;
}

/* What is left and has parameters that are tied to those of a module, once for each of these; its bytes without them.
 */
static int64_t tied_modules(const struct filling *f, const struct module *module, struct module_list *tied) {
  int64_t bytes = 0;
  *tied = (struct module_list){0};
  for (int i = 0; i < f->tensors.count; i++) {
    const struct module *parameter = f->tensors.items[i];
    if (!is_tied_to(f, parameter, module)) continue;
    for (int k = 0; k < f->left.count; k++) {
      if (!module_is_within(parameter, f->left.items[k])) continue;
      bytes += f->left.items[k]->bytes - parameter->bytes;
      add(f->arena, tied, f->left.items[k]);
      break;
    }
  }
  return bytes;
}

static void take_out(struct module_list *list, const struct module *module) {
  int count = 0;
  for (int i = 0; i < list->count; i++)
    if (list->items[i] != module) list->items[count++] = list->items[i];
  list->count = count;
}

static void put(struct filling *f, const struct module *module) {
  struct device_map *map = f->map;
  for (int i = 0; i < map->count; i++)
    if (map->items[i].module == module) return;
  ARENA_PUSH(f->arena, *map, ((struct mapped){module, f->place}));
}

/* In place of `old`, or in front where that is NULL, what a module has. `again` comes before all of it; NULL: nothing
 * does. */
static void split(struct filling *f, const struct module *module, const struct module *old,
                  const struct module *again) {
  struct module_list list = {0};
  if (again != NULL) add(f->arena, &list, again);
  if (old == NULL) add_children(f, &list, module);
  for (int i = 0; i < f->left.count; i++) {
    if (f->left.items[i] == old)
      add_children(f, &list, module);
    else
      add(f->arena, &list, f->left.items[i]);
  }
  f->left = list;
  find_largest(f);
}

/* Splits what is tied to a module, where that would fit alone; false where none of it can be. */
static bool split_tied(struct filling *f, const struct module *module, const struct module_list *tied) {
  for (int i = 0; i < tied->count; i++) {
    if (!can_split(tied->items[i], f->whole)) continue;
    split(f, tied->items[i], tied->items[i], module);
    return true;
  }
  return false;
}

/* The next place, for the same module. */
static void next_place(struct filling *f, const struct module *module) {
  struct module_list list = {0};
  f->place++;
  add(f->arena, &list, module);
  for (int i = 0; i < f->left.count; i++) add(f->arena, &list, f->left.items[i]);
  f->left = list;
}

static void place_one(struct filling *f, const struct module *module) {
  const struct place *place = &f->map->places.items[f->place];
  struct module_list tied;
  leave_largest(f, module);
  const int64_t others = tied_modules(f, module, &tied), kept = place->keeps_largest ? f->largest_bytes : 0;
  const int64_t space = place->bytes == PLACE_ENDLESS ? PLACE_ENDLESS : place->bytes - kept - f->used[f->place];
  if (place->is_disk || module->bytes + others <= space) {
    for (int i = 0; i < tied.count; i++) {
      take_out(&f->left, tied.items[i]);
      put(f, tied.items[i]);
    }
    f->used[f->place] += module->bytes + others;
    put(f, module);
    return;
  }
  if (tied.count > 0 && module->bytes <= space && split_tied(f, module, &tied)) return;
  if (module->bytes >= space && can_split(module, f->whole)) {
    split(f, module, NULL, NULL);
    return;
  }
  if (f->place + 1 == f->map->places.count) {
    f->map->homeless = module;
    f->map->lacking = module->bytes + others - space;
  }
  next_place(f, module);
}

void find_device_map(struct arena *arena, const struct whole_types *whole, struct device_map *map) {
  struct filling f = {.arena = arena, .whole = whole, .map = map};
  f.used = arena_alloc(arena, ((size_t)map->places.count + 1) * sizeof *f.used);
  note_tensors(&f, map->root);
  add_children(&f, &f.left, map->root);
  for (int i = 0; i < map->root->n_children; i++)
    if (map->root->children[i]->kind == MODULE_BUFFER) add(arena, &f.left, map->root->children[i]);
  f.largest_bytes = map->largest = largest_layer(arena, &f.left, whole, &f.largest);
  for (int i = 0; i < f.largest.count; i++) add(arena, &map->layers, f.largest.items[i]);
  while (f.left.count > 0 && f.place < map->places.count) {
    const struct module *module = f.left.items[0];
    f.left.items++;
    f.left.capacity--;
    f.left.count--;
    place_one(&f, module);
  }
}

/* ---- Shortening ---- */

/* The place that all of the map within a module is in; -1: there are several, or one entry alone, or none. */
static int only_place(const struct device_map *map, const struct module *module) {
  int place = -1, count = 0;
  for (int i = 0; i < map->count; i++) {
    if (!module_is_within(map->items[i].module, module) || map->items[i].module == module) continue;
    if (count++ > 0 && map->items[i].place != place) return -1;
    place = map->items[i].place;
  }
  return count > 1 ? place : -1;
}

static void shorten(struct arena *arena, struct device_map *map, const struct module *module) {
  const int place = only_place(map, module);
  if (place >= 0) {
    int count = 0;
    for (int i = 0; i < map->count; i++)
      if (!module_is_within(map->items[i].module, module)) map->items[count++] = map->items[i];
    map->count = count;
    ARENA_PUSH(arena, *map, ((struct mapped){module, place}));
    return;
  }
  for (int i = 0; i < module->n_children; i++)
    if (module->children[i]->kind == MODULE) shorten(arena, map, module->children[i]);
}

void shorten_device_map(struct arena *arena, struct device_map *map) {
  shorten(arena, map, map->root);
}
