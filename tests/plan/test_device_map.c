/* Device maps. With the argument "-", maps of models that standard input describes, for test_device_maps.py to compare
 * with Accelerate's:
 *
 *   model WAY GPUS [BYTES]... CPU DISK WHOLE [TYPE]...    CPU: bytes, -1: none; DISK: 0 or 1; WHOLE: how many types
 *   module NAME TYPE
 *   parameter NAME BYTES TIED                             TIED: a parameter, or -
 *   buffer NAME BYTES -
 *   end
 */
#include "gen/plan/memory/device_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/spec/cmocka_all.h"

/* ---- By hand ---- */

static struct module *add_layer(struct arena *arena, struct module *root, const char *name, int64_t bytes) {
  struct module *layer = module_child(arena, root, name, MODULE);
  module_add_tensor(module_child(arena, layer, "weight", MODULE_PARAMETER), bytes, NULL);
  return layer;
}

static void nothing_has_space(void **state) {
  struct arena *arena = arena_new();
  struct place cpu = {.name = "cpu", .bytes = 25, .keeps_largest = true};
  struct module root = {.name = ""};
  struct device_map map = {.root = &root, .places = {&cpu, 1, 1}};
  const struct whole_types none = {0};
  add_layer(arena, &root, "a", 10);
  const struct module *second = add_layer(arena, &root, "b", 10);
  add_layer(arena, &root, "c", 10);
  (void)state;
  find_device_map(arena, &none, &map);
  assert_ptr_equal(map.homeless, second); /* beside "a", and space for "c", which would come from elsewhere */
  assert_int_equal(map.lacking, 10 - (25 - 10 - 10));
  arena_free(arena);
}

static void longest_name(void **state) {
  struct arena *arena = arena_new();
  struct module root = {.name = ""}, *a = module_child(arena, &root, "a", MODULE);
  struct mapped items[] = {{&root, 0}, {a, 1}};
  const struct device_map map = {.root = &root, .items = items, .count = 2};
  (void)state;
  assert_int_equal(device_map_place(&map, "a.weight"), 1);
  assert_int_equal(device_map_place(&map, "ab.weight"), 0);
  arena_free(arena);
}

/* ---- Of standard input ---- */

struct reading {
  struct arena *arena;
  struct device_map map;
  struct whole_types whole;
  enum device_map_way way;
};

static const char *word(struct arena *arena) {
  char text[256];
  if (scanf("%255s", text) != 1) exit(1);
  return arena_string(arena, text);
}

static int64_t number(struct arena *arena) {
  return strtoll(word(arena), NULL, 10);
}

static void add_place(struct reading *r, const char *name, int64_t bytes, bool is_gpu, bool is_disk) {
  const bool first = r->map.places.count == 0;
  const struct place place = {name, bytes, is_disk ? false : !is_gpu || first, is_gpu, is_disk, false};
  ARENA_PUSH(r->arena, r->map.places, place);
}

static void read_limits(struct reading *r) {
  r->way = (enum device_map_way)number(r->arena);
  for (int64_t i = 0, gpus = number(r->arena); i < gpus; i++)
    add_place(r, arena_printf(r->arena, "%" PRId64, i), number(r->arena), true, false);
  const int64_t cpu = number(r->arena);
  if (cpu >= 0) add_place(r, "cpu", cpu, false, false);
  if (number(r->arena) == 1) add_place(r, "disk", PLACE_ENDLESS, false, true);
  r->whole.count = (int)number(r->arena);
  const char **names = arena_alloc(r->arena, ((size_t)r->whole.count + 1) * sizeof *names);
  for (int i = 0; i < r->whole.count; i++) names[i] = word(r->arena);
  r->whole.names = names;
}

static struct module *at(struct reading *r, const char *name, enum module_kind kind) {
  struct module *module = r->map.root;
  for (const char *part = name, *dot; part != NULL; part = dot != NULL ? dot + 1 : NULL) {
    dot = strchr(part, '.');
    const size_t length = dot != NULL ? (size_t)(dot - part) : strlen(part);
    module = module_child(r->arena, module, arena_copy(r->arena, part, length), dot != NULL ? MODULE : kind);
  }
  return module;
}

static bool read_model(struct reading *r) {
  char what[16];
  *r = (struct reading){.arena = r->arena};
  if (scanf("%15s", what) != 1) return false;
  r->map.root = arena_alloc(r->arena, sizeof *r->map.root);
  r->map.root->name = "";
  read_limits(r);
  while (scanf("%15s", what) == 1 && strcmp(what, "end") != 0) {
    const char *name = word(r->arena);
    if (strcmp(what, "module") == 0) {
      at(r, name, MODULE)->type = word(r->arena);
      continue;
    }
    const int64_t bytes = number(r->arena);
    const char *tied = word(r->arena);
    const struct module *other = strcmp(tied, "-") != 0 ? at(r, tied, MODULE_PARAMETER) : NULL;
    module_add_tensor(at(r, name, what[0] == 'p' ? MODULE_PARAMETER : MODULE_BUFFER), bytes, other);
  }
  return true;
}

static void print_sizes(const struct module *module) {
  if (module->bytes > 0) printf("size %s %" PRId64 "\n", module->name[0] != '\0' ? module->name : "-", module->bytes);
  for (int i = 0; i < module->n_children; i++) print_sizes(module->children[i]);
}

static void print_map(struct reading *r) {
  struct device_map *map = &r->map;
  print_sizes(map->root);
  balance_places(r->arena, map->root, &r->whole, r->way, &map->places);
  for (int i = 0; i < map->places.count; i++)
    printf("limit %s %" PRId64 "\n", map->places.items[i].name, map->places.items[i].bytes);
  find_device_map(r->arena, &r->whole, map);
  printf("largest %" PRId64, map->largest);
  for (int i = 0; i < map->layers.count; i++) printf(" %s", map->layers.items[i]->name);
  puts("");
  shorten_device_map(r->arena, map);
  for (int i = 0; i < map->count; i++)
    printf("map %s %s\n", map->items[i].module->name[0] != '\0' ? map->items[i].module->name : "-",
           map->places.items[map->items[i].place].name);
  puts("end");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_has_space), cmocka_unit_test(longest_name)};
  if (argc < 2 || strcmp(argv[1], "-") != 0) return cmocka_run_group_tests(tests, NULL, NULL);
  struct reading reading = {.arena = arena_new()};
  while (read_model(&reading)) print_map(&reading);
  arena_free(reading.arena);
  return 0;
}
