#include "gen/emit/arguments.h"

#include <string.h>

#include "gen/program/weights.h"

const char *holder_name(struct arena *arena, const char *base, int scope) {
  return scope == 0 ? base : arena_printf(arena, "%s_%d", base, scope + 1);
}

struct jinja_value index_value(struct arena *arena, int64_t first, int64_t step, int64_t modulo) {
  struct jinja_value value = jinja_map(arena);
  set_int(arena, value, "first", first);
  set_int(arena, value, "step", step);
  set_int(arena, value, "modulo", modulo);
  return value;
}

struct jinja_value argument_value(struct arena *arena, const char *holder, bool address, int64_t offset) {
  struct jinja_value value = jinja_map(arena);
  set_text(arena, value, "holder", holder);
  set_bool(arena, value, "address", address);
  set_int(arena, value, "offset", offset);
  jinja_set(arena, value, "parts", jinja_list(arena));
  return value;
}

struct jinja_value add_part(struct arena *arena, struct jinja_value argument, const char *member) {
  struct jinja_value part = jinja_map(arena);
  set_text(arena, part, "member", member);
  set_bool(arena, part, "indexed", false);
  jinja_push(arena, jinja_get(argument, "parts"), part);
  return part;
}

struct jinja_value put_part_before(struct arena *arena, struct jinja_value argument, const char *member) {
  struct jinja_value parts = jinja_get(argument, "parts");
  jinja_set(arena, argument, "parts", jinja_list(arena));
  struct jinja_value part = add_part(arena, argument, member);
  for (int i = 0; i < jinja_count(parts); i++) jinja_push(arena, jinja_get(argument, "parts"), jinja_at(parts, i));
  return part;
}

void set_index(struct arena *arena, struct jinja_value part, struct jinja_value index) {
  set_bool(arena, part, "indexed", true);
  jinja_set(arena, part, "index", index);
}

struct jinja_value memory_argument(struct arena *arena, const struct storage *storage, bool address,
                                   struct jinja_value *part) {
  const char *own = storage->kind == STORAGE_SAVED ? "saved" : "scratch";
  struct jinja_value argument = argument_value(arena, storage->alias != NULL ? "aliased" : own, address, 0);
  *part = add_part(arena, argument, storage->alias != NULL ? storage->alias->name : storage->name);
  return argument;
}

struct jinja_value weights_argument(const struct program *program, const struct region *region, const char *base,
                                    int scope, const char *path, const char *next, bool address) {
  struct arena *arena = program->arena;
  struct access_part parts[8];
  const struct weight_tree *tree = strcmp(base, "gradients") == 0 ? program->gradients : program->weights;
  int count = weight_access(tree, region, scope, path, next, parts);
  struct jinja_value argument = argument_value(arena, holder_name(arena, base, scope), address && count > 0, 0);
  for (int i = 0; i < count; i++) {
    struct jinja_value part = add_part(arena, argument, parts[i].member);
    const struct weight_array array = {.slots = (int)parts[i].modulo, .resident = (int)parts[i].resident};
    const bool turns = parts[i].resident > 0 && parts[i].step != 0; /* among the slots, after the resident ones */
    const int64_t first = turns ? parts[i].first : weight_position(&array, (int)parts[i].first);
    if (!parts[i].indexed) continue;
    set_index(arena, part, index_value(arena, first, parts[i].step, parts[i].modulo));
    if (turns) set_int(arena, jinja_get(part, "index"), "resident", parts[i].resident);
  }
  return argument;
}

struct jinja_value row_value(const struct program *program, const struct region *region, int scope, const char *path,
                             const char *next) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  int64_t first = weight_row(program->weights, region, scope, path);
  set_text(arena, value, "rows", holder_name(arena, "tensors", scope));
  jinja_set(arena, value, "index",
            index_value(arena, first, next != NULL ? weight_row(program->weights, region, scope, next) - first : 0, 0));
  return value;
}

const struct parameter *parameter_of(const struct function *function, int index) {
  const struct region *region = function->region->forward != NULL ? function->region->forward : function->region;
  return &region->parameters.items[index];
}

struct jinja_value operand_argument(const struct program *program, const struct function *function,
                                    const struct view *view) {
  struct arena *arena = program->arena;
  const struct storage *storage = storage_root(view->storage);
  struct jinja_value argument;
  if (storage->kind == STORAGE_WEIGHT || storage->kind == STORAGE_GRADIENT) {
    const struct parameter *p = parameter_of(function, storage->index);
    const char *weights = dtype_is_bits16(storage->dtype) ? bits16_weights(program) : "weights";
    argument = weights_argument(program, function->region, storage->kind == STORAGE_WEIGHT ? weights : "gradients",
                                p->scope, p->path, NULL, false);
  } else if (storage->kind == STORAGE_INPUT || storage->kind == STORAGE_RESULT) {
    argument = argument_value(arena, storage->name, false, 0);
  } else {
    struct jinja_value part;
    argument = memory_argument(arena, storage, false, &part);
    if (storage->copies > 1) {
      set_index(arena, part, index_value(arena, view->offset / storage->count, 0, 0));
      set_int(arena, argument, "offset", view->offset % storage->count);
      return argument;
    }
  }
  set_int(arena, argument, "offset", view->offset);
  return argument;
}

struct jinja_value iteration_argument(struct arena *arena, const struct view *view, int ahead) {
  const struct storage *row = view->storage;
  struct jinja_value part, argument = memory_argument(arena, row, false, &part);
  set_index(arena, part, index_value(arena, ahead, 1, row->copies == 2 ? 2 : 0));
  return argument;
}
