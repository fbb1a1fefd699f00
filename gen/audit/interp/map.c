#include "gen/audit/interp/map.h"

#include <string.h>

/* The first entry that ends after `from`. */
static int first_entry(const struct map *map, int64_t from) {
  int low = 0, high = map->count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (map->items[middle].to <= from)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void insert(struct arena *arena, struct map *map, int at, struct map_entry entry) {
  map->items = arena_grow(arena, map->items, map->count, &map->capacity, sizeof *map->items);
  memmove(&map->items[at + 1], &map->items[at], (size_t)(map->count - at) * sizeof *map->items);
  map->items[at] = entry;
  map->count++;
}

void map_write(struct arena *arena, struct map *map, int64_t from, int64_t to, const struct path *path) {
  int at = first_entry(map, from);
  if (at < map->count && map->items[at].from < from) { /* its head remains, and its tail becomes another entry */
    struct map_entry tail = {from, map->items[at].to, map->items[at].path};
    map->items[at++].to = from;
    insert(arena, map, at, tail);
  }
  int end = at;
  while (end < map->count && map->items[end].to <= to) end++;
  if (end < map->count && map->items[end].from < to) map->items[end].from = to;
  if (end == at) {
    insert(arena, map, at, (struct map_entry){from, to, path});
    return;
  }
  map->items[at] = (struct map_entry){from, to, path};
  memmove(&map->items[at + 1], &map->items[end], (size_t)(map->count - end) * sizeof *map->items);
  map->count -= end - at - 1;
}

int64_t map_unwritten(const struct map *map, int64_t from, int64_t to) {
  for (int i = first_entry(map, from); i < map->count && from < to; i++) {
    if (map->items[i].from > from) return from;
    from = map->items[i].to;
  }
  return from < to ? from : -1;
}

const struct path *map_taken(const struct map *map, int64_t from, int64_t to, const struct path *path) {
  for (int i = first_entry(map, from); i < map->count && map->items[i].from < to; i++)
    if (paths_exclude(map->items[i].path, path)) return map->items[i].path;
  return NULL;
}

/* ---- Views ---- */

/* Of two scalar types the one that counts: integers may be mixed with reals, as counters with weights. NULL for two
 * that cannot be mixed. */
static const struct type *joined(const struct type *a, const struct type *b) {
  if (a == NULL || b == NULL) return NULL;
  if (a->kind != b->kind) return a->kind == TYPE_REAL ? a : b;
  return a->size == b->size ? a : NULL;
}

/* The scalar type that an array, or a record of arrays without unions, is made of, counters aside; NULL when there are
 * several. */
static const struct type *only_scalar(const struct type *type) {
  if (type->kind == TYPE_ARRAY) return only_scalar(type->element);
  if (type->kind == TYPE_INTEGER || type->kind == TYPE_REAL) return type;
  if (type->kind != TYPE_RECORD || type->is_union || type->n_members == 0) return NULL;
  const struct type *scalar = only_scalar(type->members[0].type);
  for (int i = 1; i < type->n_members; i++) scalar = joined(scalar, only_scalar(type->members[i].type));
  return scalar;
}

/* A union of one record of arrays and one array over the same bytes: the same numbers, named and in a row. */
static bool is_view(const struct type *type) {
  if (!type->is_union || type->n_members != 2) return false;
  const struct type *a = type->members[0].type, *b = type->members[1].type;
  const struct type *record = a->kind == TYPE_RECORD ? a : b, *array = a->kind == TYPE_RECORD ? b : a;
  const struct type *one = only_scalar(record), *other = only_scalar(array);
  return record->kind == TYPE_RECORD && array->kind == TYPE_ARRAY && a->size == b->size && one != NULL &&
         other != NULL && one->kind == other->kind && one->size == other->size;
}

static int length_of(const struct path *path) {
  int length = 0;
  for (; path != NULL; path = path->parent) length++;
  return length;
}

static const struct path *ancestor(const struct path *path, int up) {
  while (up-- > 0) path = path->parent;
  return path;
}

static bool same_step(const struct path *a, const struct path *b) {
  return a->record == b->record && (a->record != NULL ? a->member == b->member : a->index == b->index);
}

bool paths_exclude(const struct path *a, const struct path *b) {
  if (a == NULL || b == NULL || a == b) return false;
  int length_a = length_of(a), length_b = length_of(b);
  for (int depth = 1; depth <= length_a && depth <= length_b; depth++) {
    const struct path *x = ancestor(a, length_a - depth), *y = ancestor(b, length_b - depth);
    if (same_step(x, y)) continue;
    return x->record != NULL && x->record == y->record && x->record->is_union && !is_view(x->record);
  }
  return false;
}

/* ---- Padding ---- */

static void add_members(struct arena *arena, struct map *map, const struct type *type, int64_t offset) {
  int64_t end = 0;
  for (int i = 0; i < type->n_members; i++) {
    const struct member *member = &type->members[i];
    if (member->offset > end) map_write(arena, map, offset + end, offset + member->offset, NULL);
    end = member->offset + member->type->size;
    const struct type *inner = member->type;
    int64_t count = inner->kind == TYPE_ARRAY && inner->element->kind == TYPE_RECORD ? inner->count : 1;
    if (count > 1 || (inner->kind == TYPE_ARRAY && inner->element->kind == TYPE_RECORD)) inner = inner->element;
    for (int64_t j = 0; j < count && inner->kind == TYPE_RECORD; j++)
      add_members(arena, map, inner, offset + member->offset + j * inner->size);
  }
  if (end < type->size) map_write(arena, map, offset + end, offset + type->size, NULL);
}

void map_add_padding(struct arena *arena, struct map *map, const struct type *type, int64_t offset) {
  if (type->kind != TYPE_RECORD) return;
  for (int i = 0; i < type->n_members; i++) {
    const struct type *member = type->members[i].type;
    if (is_view(type) && member->kind == TYPE_RECORD) add_members(arena, map, member, offset);
    if (!is_view(type)) map_add_padding(arena, map, member, offset + type->members[i].offset);
  }
}

struct map_contents map_copy_contents(struct arena *arena, const struct map *map) {
  struct map_contents copy = {arena_alloc(arena, ((size_t)map->n_contents + 1) * sizeof *copy.items), map->n_contents};
  if (copy.count > 0) memcpy(copy.items, map->contents, (size_t)copy.count * sizeof *copy.items);
  return copy;
}

void map_take_contents(struct arena *arena, struct map *map, struct map_contents contents) {
  map->n_contents = 0;
  for (int i = 0; i < contents.count; i++) {
    map->contents = arena_grow(arena, map->contents, map->n_contents, &map->contents_capacity, sizeof *map->contents);
    map->contents[map->n_contents++] = contents.items[i];
  }
}

/* What is known of the bytes of one on both paths: nothing, where the other path has not all of them as one. */
static bool join_content(struct map_content *one, struct map_contents others) {
  for (int i = 0; i < others.count; i++) {
    const struct map_content *other = &others.items[i];
    if (other->from > one->from || other->to < one->to) continue;
    one->exact = one->exact && other->exact && one->low == other->low && one->high == other->high;
    if (other->low < one->low) one->low = other->low;
    if (other->high > one->high) one->high = other->high;
    if (other->grouping != one->grouping || other->from != one->from || other->to != one->to) one->grouping = NULL;
    return true;
  }
  return false;
}

void map_join_contents(struct map *map, struct map_contents other) {
  int count = 0;
  for (int i = 0; i < map->n_contents; i++)
    if (join_content(&map->contents[i], other)) map->contents[count++] = map->contents[i];
  map->n_contents = count;
}
