/* The arena's map: structures of parameters, of saved values and of scratch. */
#include <inttypes.h>
#include <string.h>

#include "gen/emit/rows.h"
#include "gen/emit/values.h"
#include "gen/program/layers.h"
#include "gen/program/sharding.h"
#include "gen/program/state.h"
#include "gen/program/storage.h"
#include "gen/program/target.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

/* ---- Parameters ---- */

/* bits16: of the structure of 16-bit copies, in which what has no floats, and so no copy, has half its room, too. */
static struct jinja_value weight_member_value(const struct program *program, const struct weight_member *member,
                                              bool bits16) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  const struct weight_node *node = member->node;
  set_text(arena, value, "name", member->name);
  const char *type = node->parameter != NULL ? ""
                     : bits16                ? bits16_struct(arena, program, node->type)
                                             : node->type->name;
  set_text(arena, value, "struct", type);
  if (bits16 || node->parameter != NULL)
    set_text(arena, value, "type", element_type(bits16 ? program->bits16 : node->parameter->dtype));
  set_int(arena, value, "alignment", bits16 ? 32 : 64);
  set_int(arena, value, "array", node->array != NULL ? weight_array_length(node->array) : 0);
  if (node->parameter != NULL) {
    const struct shape shape = node->parameter->shape;
    const int64_t bytes = shape_count(shape) * dtype_size(node->parameter->dtype), floats = (bytes + 3) / 4;
    const bool dense = floats == shape_count(shape);
    set_text(arena, value, "extent",
             bits16 && !dense ? arena_printf(arena, "%lld", (long long)floats) : extent_text(arena, shape));
    set_text(arena, value, "shape", bits16 && !dense ? "" : shape_text(arena, shape));
    set_origin(arena, value, node->parameter->where);
  }
  return value;
}

static struct jinja_value weight_struct_value(const struct program *program, const struct weight_struct *type,
                                              bool bits16) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena), members = jinja_list(arena);
  for (int k = 0; k < type->n_members; k++)
    jinja_push(arena, members, weight_member_value(program, &type->members[k], bits16));
  set_text(arena, value, "name", bits16 ? bits16_struct(arena, program, type) : type->name);
  set_int(arena, value, "bytes", type->bytes / (bits16 ? 2 : 1));
  jinja_set(arena, value, "members", members);
  return value;
}

struct jinja_value weight_structs_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int bits16 = 0; bits16 <= (target_copies(program) != DTYPE_FLOAT32); bits16++)
    for (int i = 0; i < program->weights->n_structs; i++)
      jinja_push(arena, list, weight_struct_value(program, program->weights->structs[i], bits16));
  for (int i = 0; i < program->gradients->n_structs && program->gradients != program->weights; i++)
    if (program->gradients->structs[i]->bytes > 0)
      jinja_push(arena, list, weight_struct_value(program, program->gradients->structs[i], false));
  return list;
}

static struct jinja_value parts_value(const struct program *program, const struct weight_tree *tree, const char *path) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  struct access_part parts[8];
  int count = weight_access(tree, program->graph->entry, 0, path, NULL, parts);
  for (int k = 0; k < count; k++) {
    struct jinja_value part = jinja_map(arena);
    set_text(arena, part, "member", parts[k].member);
    set_bool(arena, part, "indexed", parts[k].indexed);
    set_int(arena, part, "first", parts[k].first);
    jinja_push(arena, list, part);
  }
  return list;
}

/* Bytes from the gradient of a layer's parameter to that of the next layer. */
static int64_t gradient_stride(const struct program *program, int weight) {
  const struct layers *layers = layers_of(program, weight);
  return layers != NULL
             ? program->weights->items[weight + layers->round].gradient - program->weights->items[weight].gradient
             : 0;
}

struct jinja_value tensors_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    struct jinja_value value = jinja_map(arena);
    jinja_set(arena, value, "parts", parts_value(program, program->weights, weight->place));
    if (weight->zero) jinja_set(arena, value, "gradient", parts_value(program, program->gradients, weight->place));
    set_int(arena, value, "row", layers_row(program, i));
    set_literal(arena, value, "literal", layers_name(program, i));
    set_comment(arena, value, "comment", layers_name(program, i));
    set_int(arena, value, "offset", weight->offset);
    jinja_set(arena, value, "shape", shape_value(arena, weight->parameter->shape));
    set_text(arena, value, "extent", extent_text(arena, weight->parameter->shape));
    set_text(arena, value, "dtype", dtype_enumerator(weight->parameter->dtype));
    set_text(arena, value, "init", init_enumerator(weight->parameter->init.kind));
    set_real(arena, value, "a", weight->parameter->init.a);
    set_real(arena, value, "b", weight->parameter->init.b);
    set_int(arena, value, "gradient_offset", weight->gradient);
    set_int(arena, value, "gradient_stride", gradient_stride(program, i));
    set_bool(arena, value, "zero", weight->zero);
    set_origin(arena, value, weight->parameter->where);
    jinja_push(arena, list, value);
  }
  return list;
}

int64_t range_of_gradient(const struct program *program, int64_t element, int stage) {
  const struct flat_range_list *ranges = &program->optimizer.flat_ranges;
  for (int i = 0; i < ranges->count; i++) {
    const struct flat_range *range = &ranges->items[i];
    if (range->stage == stage && element >= range->gradient && element - range->gradient < range->end - range->first)
      return i;
  }
  return -1;
}

struct jinja_value gradients_value(const struct program *program, enum gradient_set set) {
  const struct weight_tree *weights = program->weights;
  struct table_row *rows = arena_alloc(program->arena, ((size_t)weights->count + 1) * sizeof *rows);
  const int64_t size = dtype_size(DTYPE_FLOAT32);
  const bool sharded = set != GRADIENTS_ALL && shard_has_own_gradients(program);
  int count = 0;
  for (int i = 0; i < weights->count; i++) {
    const struct weight *weight = &weights->items[i];
    int64_t length = shape_count(weight->parameter->shape);
    const enum placement_form form = weight->parameter->placement.form;
    if (weight->gradient < 0 || (set == GRADIENTS_WHOLE && form != PLACED_WHOLE)) continue;
    if ((set == GRADIENTS_CUT && form != PLACED_SPLIT) || (set == GRADIENTS_EXPERT && form != PLACED_EXPERT)) continue;
    if (set == GRADIENTS_PARTIAL && !weight->parameter->partial_gradient) continue;
    if (set != GRADIENTS_ALL) length = arena_aligned(length * size) / size;
    struct table_row row = {.name = weight->path, .same = {length}, .steps = {weight->gradient / size}};
    if (sharded) {
      const int64_t range = range_of_gradient(program, row.steps[0], 0);
      row.steps[1] = row.steps[0] - program->optimizer.flat_ranges.items[range].gradient;
      row.steps[0] = range;
    }
    rows[count++] = row;
  }
  return table_value(program->arena, rows, count, sharded ? 2 : 1, 1);
}

/* Bytes from one layer's weights to the next one's, as the size of a structure where there is one. */
static const char *stride_text(const struct program *program, const struct layers *layers) {
  const char *path = program->weights->items[layers->first].path;
  size_t number = strspn(path + layers->before, "0123456789");
  const struct weight_node *node =
      weight_node_at(program->weights->root, arena_copy(program->arena, path, (size_t)layers->before + number));
  if (node != NULL && node->array != NULL && node->array->slots == 0 && node->type->bytes == layers->stride)
    return arena_printf(program->arena, "sizeof(struct %s)", node->type->name);
  return arena_printf(program->arena, "%" PRId64, layers->stride);
}

struct jinja_value layers_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->layers.count; i++) {
    const struct layers *layers = &program->layers.items[i];
    struct jinja_value value = jinja_map(arena);
    const char *path = program->weights->items[layers->first].path;
    set_comment(arena, value, "name", arena_printf(arena, "%.*s%%d", layers->before, path));
    set_int(arena, value, "first", layers_row(program, layers->first));
    set_int(arena, value, "rows", layers->rows);
    set_int(arena, value, "from", layers->from);
    set_int(arena, value, "count", layers->count);
    set_text(arena, value, "stride", stride_text(program, layers));
    set_bool(arena, value, "with_next", layers->with_next);
    jinja_push(arena, list, value);
  }
  return list;
}

/* ---- Saved values and scratch ---- */

static struct jinja_value struct_member_value(struct arena *arena, const char *name, const char *type, int count) {
  struct jinja_value value = jinja_map(arena);
  set_text(arena, value, "name", name);
  set_text(arena, value, "struct", type);
  set_int(arena, value, "array", count > 1 ? count : 0);
  return value;
}

static struct jinja_value storage_value(struct arena *arena, const struct storage *storage) {
  struct jinja_value value;
  if (storage->frame != NULL) {
    value = struct_member_value(arena, storage->name, saved_type(arena, storage->frame), storage->copies);
    set_node_origin(arena, value, storage->call);
    return value;
  }
  value = jinja_map(arena);
  const struct value *tensor = storage->value;
  bool same = tensor != NULL && shape_count(tensor->shape) == storage->count;
  set_text(arena, value, "name", storage->name);
  set_text(arena, value, "struct", "");
  set_text(arena, value, "type", element_type(storage->dtype));
  set_int(arena, value, "array", storage->copies > 1 ? storage->copies : 0);
  set_text(arena, value, "extent",
           same ? extent_text(arena, tensor->shape) : arena_printf(arena, "%lld", (long long)storage->count));
  set_text(arena, value, "shape", same ? shape_text(arena, tensor->shape) : "");
  if (tensor != NULL) set_node_origin(arena, value, tensor->producer);
  return value;
}

static struct jinja_value saved_value(struct arena *arena, const struct function *function) {
  struct jinja_value members = jinja_list(arena);
  for (int i = 0; i < function->storages.count; i++)
    if (function->storages.items[i]->kind == STORAGE_SAVED && function->storages.items[i]->alias == NULL)
      jinja_push(arena, members, storage_value(arena, function->storages.items[i]));
  return members;
}

static struct jinja_value scratch_value(struct arena *arena, const struct function *function) {
  struct jinja_value slots = jinja_list(arena);
  for (int i = 0; i < function->n_slots; i++) {
    const struct slot *slot = &function->slots[i];
    struct jinja_value members = jinja_list(arena);
    for (int k = 0; k < slot->storages.count; k++)
      jinja_push(arena, members, storage_value(arena, slot->storages.items[k]));
    for (int k = 0; k < slot->n_callees; k++)
      jinja_push(arena, members,
                 struct_member_value(arena, slot->callees[k]->name, scratch_type(arena, slot->callees[k]), 1));
    jinja_push(arena, slots, members);
  }
  return slots;
}

struct jinja_value memories_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->functions.count; i++) {
    const struct function *function = program->functions.items[i];
    struct jinja_value value = jinja_map(arena);
    bool saves = function->forward == NULL && function->saved_bytes > 0;
    set_text(arena, value, "function", function->name);
    set_text(arena, value, "saved_type", saved_type(arena, function));
    set_text(arena, value, "scratch_type", scratch_type(arena, function));
    set_int(arena, value, "saved_bytes", saves ? function->saved_bytes : 0);
    set_int(arena, value, "scratch_bytes", function->scratch_bytes);
    jinja_set(arena, value, "saved", saves ? saved_value(arena, function) : jinja_list(arena));
    jinja_set(arena, value, "scratch", scratch_value(arena, function));
    set_origin(arena, value, function->region->where);
    jinja_push(arena, list, value);
  }
  return list;
}

/* ---- Memory of gradients ---- */

/* What is between two members, or before the first. */
static struct jinja_value gap_value(struct arena *arena, const char *next, int64_t bytes) {
  struct jinja_value value = jinja_map(arena);
  set_text(arena, value, "name", arena_printf(arena, "before_%s", next));
  set_text(arena, value, "struct", "");
  set_text(arena, value, "type", "char");
  set_int(arena, value, "array", 0);
  set_text(arena, value, "extent", arena_printf(arena, "%lld", (long long)bytes));
  return value;
}

/* Members in the order of their addresses, so far: where the last one ends. */
struct members {
  struct jinja_value list;
  int64_t end;
};

static void push_member(struct arena *arena, struct members *members, struct jinja_value member, const char *name,
                        int64_t at, int64_t bytes) {
  if (at > members->end) jinja_push(arena, members->list, gap_value(arena, name, at - members->end));
  jinja_push(arena, members->list, member);
  members->end = arena_aligned(at + bytes);
}

/* Slots of states that are on a disk. */
static void push_slots(const struct program *program, struct members *members) {
  const int64_t slots = program->disk.ahead.slots;
  struct jinja_value member = struct_member_value(program->arena, "buckets", "bucket", 0);
  set_int(program->arena, member, "array", slots);
  push_member(program->arena, members, member, "buckets", program->disk.ahead.at, slots * disk_slot_bytes(program));
}

struct jinja_value aliased_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  struct members members = {jinja_list(arena), 0};
  bool slots = program->disk.ahead.slots > 0;
  for (int i = 0; i < program->aliases.count; i++) {
    const struct alias *alias = &program->aliases.items[i];
    struct jinja_value member = storage_value(arena, alias->storage);
    set_text(arena, member, "name", alias->name);
    if (slots && program->disk.ahead.at < alias->at) {
      push_slots(program, &members);
      slots = false;
    }
    push_member(arena, &members, member, alias->name, alias->at, storage_bytes(alias->storage));
  }
  if (slots) push_slots(program, &members);
  set_int(arena, value, "bytes", members.end);
  jinja_set(arena, value, "members", members.list);
  return value;
}
