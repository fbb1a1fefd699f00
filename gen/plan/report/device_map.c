#include "gen/plan/report/device_map.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/program/target.h"

/* ---- What streams ---- */

/* A module that is not in the memory of the device, and the one before it in the model, while which it may come. */
struct streamed {
  const struct mapped *mapped;
  const struct module *before;
};

struct streamed_list {
  struct streamed *items;
  int count, capacity;
};

static const struct mapped *mapped_at(const struct device_map *map, const struct module *module) {
  for (int i = 0; i < map->count; i++)
    if (map->items[i].module == module) return &map->items[i];
  return NULL;
}

/* Whether a memory is on a device that computes, or the host's of a program without one. */
static bool computes(const struct device_map *map, int place) {
  return map->places.items[0].is_gpu ? map->places.items[place].is_gpu : !map->places.items[place].is_disk;
}

static void add_streamed(struct arena *arena, const struct device_map *map, const struct module *module,
                         struct streamed_list *list, const struct module **before) {
  const struct mapped *mapped = mapped_at(map, module);
  for (int i = 0; i < module->n_children && mapped == NULL; i++)
    add_streamed(arena, map, module->children[i], list, before);
  if (mapped == NULL) return;
  if (!computes(map, mapped->place) && module->bytes > 0)
    ARENA_PUSH(arena, *list, ((struct streamed){mapped, *before}));
  *before = module;
}

static struct streamed_list streamed_of(const struct program *program) {
  struct streamed_list list = {0};
  const struct module *before = NULL;
  add_streamed(program->arena, program->map, program->map->root, &list, &before);
  return list;
}

/* ---- Text ---- */

static const char *name_of(const struct module *module) {
  return module->name[0] != '\0' ? module->name : "the model";
}

static int64_t bytes_at(const struct device_map *map, int place) {
  int64_t bytes = 0;
  for (int i = 0; i < map->count; i++)
    if (map->items[i].place == place) bytes += map->items[i].module->bytes;
  return bytes;
}

static void put_places(struct text *text, const struct program *program) {
  const struct device_map *map = program->map;
  for (int i = 0; i < map->places.count; i++) {
    const struct place *place = &map->places.items[i];
    const char *limit = place->is_disk                  ? "no limit; the files of the weights are read"
                        : place->bytes == PLACE_ENDLESS ? "no limit"
                                                        : bytes_text(program->arena, place->bytes);
    text_printf(text, "%-9s %10s of modules; %s%s\n", place->name, bytes_text(program->arena, bytes_at(map, i)), limit,
                place->keeps_largest && place->bytes != PLACE_ENDLESS ? ", less the largest layer" : "");
  }
}

static void put_sizes(struct text *text, const struct program *program, const struct module *module, int depth) {
  for (int i = 0; i < module->n_children; i++) {
    const struct module *child = module->children[i];
    if (child->kind != MODULE || child->bytes == 0) continue;
    const int place = device_map_place(program->map, child->name);
    const char *where = place >= 0 ? program->map->places.items[place].name : "several";
    text_printf(text, "  %*s%-*s %10s  %s\n", depth * 2, "", 44 - depth * 2, child->name,
                bytes_text(program->arena, child->bytes), where);
    if (place < 0) put_sizes(text, program, child, depth + 1);
  }
}

static void put_streams(struct text *text, const struct program *program, double bandwidth) {
  const struct streamed_list list = streamed_of(program);
  int64_t bytes = 0;
  for (int i = 0; i < list.count; i++) {
    const struct streamed *one = &list.items[i];
    const struct module *module = one->mapped->module;
    text_printf(text, "streams   %s, %s, from %s %s%s", name_of(module), bytes_text(program->arena, module->bytes),
                program->map->places.items[one->mapped->place].name,
                one->before != NULL ? "during " : "before the first layer",
                one->before != NULL ? name_of(one->before) : "");
    if (bandwidth > 0) text_printf(text, ": %.3g ms", (double)module->bytes / bandwidth * 1e3);
    text_puts(text, "\n");
    bytes += module->bytes;
  }
  if (list.count == 0) return;
  text_printf(text, "streams   %s in each forward%s", bytes_text(program->arena, bytes),
              program->kind == PROGRAM_TRAIN ? ", and again in each backward" : "");
  if (bandwidth > 0)
    text_printf(text, ": %.3g s at %.4g MB/s, if nothing computes meanwhile", (double)bytes / bandwidth,
                bandwidth / 1e6);
  text_puts(text, "\n");
}

const char *device_map_text(const struct program *program, double bandwidth) {
  const struct device_map *map = program->map;
  struct text text = text_in(program->arena);
  text_printf(&text, "map       %s of parameters and buffers, by shapes and types alone: no weights are read\n",
              bytes_text(program->arena, map->root->bytes));
  put_places(&text, program);
  text_printf(&text, "largest   %s:", bytes_text(program->arena, map->largest));
  for (int i = 0; i < map->layers.count && i < 3; i++)
    text_printf(&text, "%s %s", i > 0 ? "," : "", name_of(map->layers.items[i]));
  if (map->layers.count > 3) text_printf(&text, " and %d more", map->layers.count - 3);
  text_puts(&text, "\nmodules\n");
  for (int i = 0; i < map->count; i++)
    text_printf(&text, "  %-44s %10s  %s\n", name_of(map->items[i].module),
                bytes_text(program->arena, map->items[i].module->bytes), map->places.items[map->items[i].place].name);
  text_puts(&text, "sizes\n");
  put_sizes(&text, program, map->root, 0);
  put_streams(&text, program, bandwidth);
  return text_string(&text);
}

/* ---- JSON ---- */

static void add_sizes(json_t *sizes, const struct module *module) {
  if (module->bytes > 0) json_object_set_new(sizes, module->name, json_integer((json_int_t)module->bytes));
  for (int i = 0; i < module->n_children; i++) add_sizes(sizes, module->children[i]);
}

static json_t *streams_json(const struct program *program, double bandwidth) {
  const struct streamed_list list = streamed_of(program);
  json_t *streams = json_array();
  for (int i = 0; i < list.count; i++) {
    const struct module *module = list.items[i].mapped->module;
    json_t *one =
        json_pack("{s:s, s:s, s:I}", "module", module->name, "from",
                  program->map->places.items[list.items[i].mapped->place].name, "bytes", (json_int_t)module->bytes);
    if (list.items[i].before != NULL) json_object_set_new(one, "while", json_string(list.items[i].before->name));
    if (bandwidth > 0) json_object_set_new(one, "seconds", json_real((double)module->bytes / bandwidth));
    json_array_append_new(streams, one);
  }
  return streams;
}

const char *device_map_json(const struct program *program, double bandwidth) {
  const struct device_map *map = program->map;
  json_t *places = json_object(), *limits = json_object(), *sizes = json_object(), *names = json_array();
  for (int i = 0; i < map->count; i++)
    json_object_set_new(places, map->items[i].module->name, json_string(map->places.items[map->items[i].place].name));
  for (int i = 0; i < map->places.count; i++)
    if (map->places.items[i].bytes != PLACE_ENDLESS)
      json_object_set_new(limits, map->places.items[i].name, json_integer((json_int_t)map->places.items[i].bytes));
  add_sizes(sizes, map->root);
  for (int i = 0; i < map->layers.count; i++) json_array_append_new(names, json_string(map->layers.items[i]->name));
  json_t *root = json_pack("{s:o, s:o, s:o, s:{s:I, s:o}, s:o}", "device_map", places, "max_memory", limits,
                           "module_sizes", sizes, "largest_layer", "bytes", (json_int_t)map->largest, "names", names,
                           "streams", streams_json(program, bandwidth));
  char *text = json_dumps(root, JSON_INDENT(2));
  const char *copy = arena_printf(program->arena, "%s\n", text);
  free(text);
  json_decref(root);
  return copy;
}
