#include "gen/jinja/value.h"

#include <math.h>
#include <string.h>

const struct undefined_info jj_missing_mark = {.hint = NULL};
const struct undefined_info jj_nameless = {.hint = NULL};

/* --- strings --- */

struct jinja_string *jj_string_new(struct pool *pool, const char *bytes, size_t length) {
  struct jinja_string *string = jj_alloc(pool, sizeof *string + length + 1);
  string->length = length;
  string->hash = 0;
  string->word = W_none;
  string->spans = NULL;
  if (length > 0 && bytes != NULL) memcpy(string->bytes, bytes, length);
  string->bytes[length] = '\0';
  return string;
}

struct jinja_value jj_text(struct pool *pool, const char *bytes, size_t length) {
  return jj_string_value(jj_string_new(pool, bytes, length));
}

struct jinja_value jj_cstr(struct pool *pool, const char *text) {
  return jj_text(pool, text, strlen(text));
}

uint32_t jj_hash_bytes(const char *bytes, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
  return hash != 0 ? hash : 1;
}

bool jj_string_equal(const struct jinja_string *a, const struct jinja_string *b) {
  return a == b || (a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0);
}

/* --- lists --- */

struct jinja_value jj_list(struct pool *pool, enum flavour flavour, int room) {
  struct jinja_list *list = jj_alloc_zero(pool, sizeof *list);
  list->flavour = (uint8_t)flavour;
  if (room > 0) {
    list->items = jj_alloc(pool, (size_t)room * sizeof *list->items);
    list->capacity = room;
  }
  return (struct jinja_value){.kind = JINJA_LIST, .as.list = list};
}

void jj_push(struct pool *pool, struct jinja_list *list, struct jinja_value item) {
  if (list->count == list->capacity) {
    int wider = list->capacity > 0 ? list->capacity * 2 : 4;
    struct jinja_value *items = jj_alloc(pool, (size_t)wider * sizeof *items);
    if (list->count > 0) memcpy(items, list->items, (size_t)list->count * sizeof *items);
    list->items = items;
    list->capacity = wider;
  }
  list->items[list->count++] = item;
}

struct jinja_value jj_pair(struct pool *pool, struct jinja_value first, struct jinja_value second) {
  struct jinja_value pair = jj_list(pool, FLAVOUR_TUPLE, 2);
  jj_push(pool, pair.as.list, first);
  jj_push(pool, pair.as.list, second);
  return pair;
}

/* --- maps --- */

enum { SCANNED = 6 }; /* up to this many entries a scan beats an index */

struct jinja_value jj_map(struct pool *pool) {
  return (struct jinja_value){.kind = JINJA_MAP, .as.map = jj_alloc_zero(pool, sizeof(struct jinja_map))};
}

static bool same_key(struct jinja_value a, struct jinja_value b) {
  if (a.kind == JINJA_STRING && b.kind == JINJA_STRING) return jj_string_equal(a.as.string, b.as.string);
  return jj_equal(a, b);
}

static struct map_entry *find_hashed(const struct jinja_map *map, struct jinja_value key, uint32_t hash) {
  if (map->index == NULL) {
    for (int i = 0; i < map->count; i++) {
      if (map->items[i].hash == hash && same_key(map->items[i].key, key)) return &map->items[i];
    }
    return NULL;
  }
  uint32_t mask = (uint32_t)map->index_size - 1;
  for (uint32_t at = hash & mask; map->index[at] != 0; at = (at + 1) & mask) {
    struct map_entry *entry = &map->items[map->index[at] - 1];
    if (entry->hash == hash && same_key(entry->key, key)) return entry;
  }
  return NULL;
}

struct map_entry *jj_map_find(const struct jinja_map *map, struct jinja_value key) {
  return find_hashed(map, key, jj_hash(key));
}

struct map_entry *jj_map_find_string(const struct jinja_map *map, struct jinja_string *key) {
  return find_hashed(map, jj_string_value(key), jj_string_hash(key));
}

static void place_in_index(struct jinja_map *map, int number) {
  uint32_t mask = (uint32_t)map->index_size - 1, at = map->items[number].hash & mask;
  while (map->index[at] != 0) at = (at + 1) & mask;
  map->index[at] = number + 1;
}

static void rebuild_index(struct jinja_map *map) {
  memset(map->index, 0, (size_t)map->index_size * sizeof *map->index);
  for (int i = 0; i < map->count; i++) place_in_index(map, i);
}

static void grow_map(struct pool *pool, struct jinja_map *map) {
  int wider = map->capacity > 0 ? map->capacity * 2 : 4;
  struct map_entry *items = jj_alloc(pool, (size_t)wider * sizeof *items);
  if (map->count > 0) memcpy(items, map->items, (size_t)map->count * sizeof *items);
  map->items = items;
  map->capacity = wider;
  if (wider > SCANNED) {
    map->index_size = wider * 2;
    map->index = jj_alloc(pool, (size_t)map->index_size * sizeof *map->index);
    rebuild_index(map);
  }
}

void jj_map_put(struct pool *pool, struct jinja_map *map, struct jinja_value key, struct jinja_value value) {
  uint32_t hash = jj_hash(key);
  struct map_entry *entry = find_hashed(map, key, hash);
  if (entry != NULL) {
    entry->value = value;
    return;
  }
  if (map->count == map->capacity) grow_map(pool, map);
  map->items[map->count++] = (struct map_entry){key, value, hash};
  if (map->index != NULL) place_in_index(map, map->count - 1);
}

bool jj_map_remove(struct jinja_map *map, struct jinja_value key) {
  struct map_entry *entry = jj_map_find(map, key);
  if (entry == NULL) return false;
  size_t after = (size_t)(map->items + map->count - entry - 1);
  memmove(entry, entry + 1, after * sizeof *entry);
  map->count--;
  if (map->index != NULL) rebuild_index(map);
  return true;
}

/* --- questions --- */

bool jj_truth_plain(struct jinja_value v) {
  switch (v.kind) {
  case JINJA_UNDEFINED:
  case JINJA_NONE:
    return false;
  case JINJA_BOOL:
    return v.as.boolean;
  case JINJA_INT:
    return v.as.integer != 0;
  case JINJA_DOUBLE:
    return v.as.real != 0.0;
  case JINJA_STRING:
    return v.as.string->length > 0;
  case JINJA_LIST:
    return v.as.list->flavour == FLAVOUR_GENERATOR || v.as.list->count > 0;
  case JINJA_MAP:
    return v.as.map->count > 0;
  case JINJA_OBJECT:
    return true;
  }
  return false;
}

/* Lists can hold themselves, or each other many times over: a comparison that goes too deep or too far ends as
 * "not equal" (Python's ends in a RecursionError, or not at all). */
struct bounds {
  int depth;
  int64_t left;
};
enum { MAX_COMPARE_DEPTH = 500, MAX_COMPARED = 10000000 };

static bool equal_within(struct jinja_value a, struct jinja_value b, struct bounds *bounds);

static bool is_tuple(const struct jinja_list *list) {
  return list->flavour == FLAVOUR_TUPLE || list->flavour == FLAVOUR_GROUP;
}

static bool equal_lists(const struct jinja_list *a, const struct jinja_list *b, struct bounds *bounds) {
  if (a == b) return true;
  if (is_tuple(a) != is_tuple(b) || (!is_tuple(a) && a->flavour != b->flavour)) return false;
  if (a->flavour == FLAVOUR_GENERATOR || a->flavour == FLAVOUR_VALUES || a->count != b->count) return false;
  for (int i = 0; i < a->count; i++) {
    if (!equal_within(a->items[i], b->items[i], bounds)) return false;
  }
  return true;
}

static bool equal_maps(const struct jinja_map *a, const struct jinja_map *b, struct bounds *bounds) {
  if (a == b) return true;
  if (a->count != b->count) return false;
  for (int i = 0; i < a->count; i++) {
    struct map_entry *other = jj_map_find(b, a->items[i].key);
    if (other == NULL || !equal_within(a->items[i].value, other->value, bounds)) return false;
  }
  return true;
}

/* Undefined values are equal when they are of one class. */
static bool is_standard(struct jinja_value v) {
  const struct undefined_info *info = v.as.object;
  return info != NULL && info->standard;
}

static bool equal_within(struct jinja_value a, struct jinja_value b, struct bounds *bounds) {
  if (jj_is_number(a) && jj_is_number(b)) {
    if (jj_is_integral(a) && jj_is_integral(b)) return jj_as_int(a) == jj_as_int(b);
    return jj_as_double(a) == jj_as_double(b);
  }
  if (a.kind != b.kind) return false;
  if (a.kind == JINJA_STRING) return jj_string_equal(a.as.string, b.as.string);
  if (a.kind == JINJA_OBJECT) return a.as.object == b.as.object;
  if (a.kind == JINJA_UNDEFINED) return is_standard(a) == is_standard(b);
  if (a.kind != JINJA_LIST && a.kind != JINJA_MAP) return true;
  if (bounds->depth == MAX_COMPARE_DEPTH || bounds->left-- <= 0) return false;
  bounds->depth++;
  bool equal =
      a.kind == JINJA_LIST ? equal_lists(a.as.list, b.as.list, bounds) : equal_maps(a.as.map, b.as.map, bounds);
  bounds->depth--;
  return equal;
}

bool jj_equal(struct jinja_value a, struct jinja_value b) {
  struct bounds bounds = {0, MAX_COMPARED};
  return equal_within(a, b, &bounds);
}

static int order_strings(const struct jinja_string *a, const struct jinja_string *b) {
  size_t common = a->length < b->length ? a->length : b->length;
  int order = memcmp(a->bytes, b->bytes, common);
  if (order != 0) return order < 0 ? -1 : 1;
  return (a->length > b->length) - (a->length < b->length);
}

static int order_within(struct jinja_value a, struct jinja_value b, bool *comparable, struct bounds *bounds);

static int order_lists(const struct jinja_list *a, const struct jinja_list *b, bool *comparable,
                       struct bounds *bounds) {
  bool alike = (is_tuple(a) && is_tuple(b)) || (a->flavour == FLAVOUR_LIST && b->flavour == FLAVOUR_LIST);
  if (!alike || bounds->depth++ == MAX_COMPARE_DEPTH) {
    *comparable = false;
    return 0;
  }
  for (int i = 0; i < a->count && i < b->count; i++) {
    if (equal_within(a->items[i], b->items[i], bounds)) continue;
    return order_within(a->items[i], b->items[i], comparable, bounds);
  }
  return (a->count > b->count) - (a->count < b->count);
}

static int order_numbers(struct jinja_value a, struct jinja_value b) {
  if (jj_is_integral(a) && jj_is_integral(b)) {
    int64_t x = jj_as_int(a), y = jj_as_int(b);
    return (x > y) - (x < y);
  }
  double x = jj_as_double(a), y = jj_as_double(b);
  if (isnan(x) || isnan(y)) return 2;
  return (x > y) - (x < y);
}

static int order_within(struct jinja_value a, struct jinja_value b, bool *comparable, struct bounds *bounds) {
  if (jj_is_number(a) && jj_is_number(b)) return order_numbers(a, b);
  if (a.kind == JINJA_STRING && b.kind == JINJA_STRING) return order_strings(a.as.string, b.as.string);
  if (a.kind == JINJA_LIST && b.kind == JINJA_LIST) return order_lists(a.as.list, b.as.list, comparable, bounds);
  *comparable = false;
  return 0;
}

int jj_order(struct jinja_value a, struct jinja_value b, bool *comparable) {
  struct bounds bounds = {0, MAX_COMPARED};
  *comparable = true;
  return order_within(a, b, comparable, &bounds);
}

bool jj_hashable(struct jinja_value v) {
  if (v.kind == JINJA_MAP) return false;
  if (v.kind != JINJA_LIST) return true;
  if (v.as.list->flavour == FLAVOUR_LIST || v.as.list->flavour == FLAVOUR_ITEMS) return false;
  for (int i = 0; i < v.as.list->count; i++) {
    if (!jj_hashable(v.as.list->items[i])) return false;
  }
  return true;
}

static uint32_t hash_int(int64_t value) {
  uint64_t mixed = (uint64_t)value * 0x9E3779B97F4A7C15u;
  return (uint32_t)(mixed >> 32) | 1u;
}

uint32_t jj_hash(struct jinja_value v) {
  switch (v.kind) {
  case JINJA_STRING:
    return jj_string_hash(v.as.string);
  case JINJA_BOOL:
  case JINJA_INT:
    return hash_int(jj_as_int(v));
  case JINJA_DOUBLE:
    if (v.as.real >= -9e18 && v.as.real <= 9e18 && floor(v.as.real) == v.as.real) return hash_int((int64_t)v.as.real);
    return jj_hash_bytes((const char *)&v.as.real, sizeof v.as.real);
  case JINJA_LIST: {
    uint32_t hash = 31;
    for (int i = 0; i < v.as.list->count; i++) hash = hash * 1000003u ^ jj_hash(v.as.list->items[i]);
    return hash;
  }
  case JINJA_OBJECT:
    return hash_int((int64_t)(intptr_t)v.as.object);
  default:
    return 7;
  }
}

static const char *list_type_name(const struct jinja_list *list) {
  static const char *const names[] = {"list",       "tuple",     "range",       "generator",
                                      "dict_items", "dict_keys", "dict_values", "_GroupTuple"};
  return names[list->flavour];
}

const char *jj_type_name(struct jinja_value v) {
  static const char *const objects[] = {"Macro",
                                        "LoopContext",
                                        "Namespace",
                                        "Cycler",
                                        "Joiner",
                                        "TemplateModule",
                                        "TemplateReference",
                                        "BlockReference",
                                        "builtin_function_or_method",
                                        "type"};
  switch (v.kind) {
  case JINJA_UNDEFINED:
    return "Undefined";
  case JINJA_NONE:
    return "NoneType";
  case JINJA_BOOL:
    return "bool";
  case JINJA_INT:
    return "int";
  case JINJA_DOUBLE:
    return "float";
  case JINJA_STRING:
    return v.safe ? "Markup" : "str";
  case JINJA_LIST:
    return list_type_name(v.as.list);
  case JINJA_MAP:
    return "dict";
  case JINJA_OBJECT:
    return objects[((struct object *)v.as.object)->type];
  }
  return "object";
}

/* --- the public makers --- */

struct jinja_value jinja_none(void) {
  return (struct jinja_value){.kind = JINJA_NONE};
}

struct jinja_value jinja_bool(bool value) {
  return (struct jinja_value){.kind = JINJA_BOOL, .as.boolean = value};
}

struct jinja_value jinja_int(int64_t value) {
  return (struct jinja_value){.kind = JINJA_INT, .as.integer = value};
}

struct jinja_value jinja_double(double value) {
  return (struct jinja_value){.kind = JINJA_DOUBLE, .as.real = value};
}

struct jinja_value jinja_string(struct arena *arena, const char *text) {
  return jinja_string_n(arena, text, strlen(text));
}

struct jinja_value jinja_string_n(struct arena *arena, const char *bytes, size_t length) {
  struct pool pool = jj_pool_direct(arena);
  return jj_text(&pool, bytes, length);
}

struct jinja_value jinja_list(struct arena *arena) {
  struct pool pool = jj_pool_direct(arena);
  struct jinja_value list = jj_list(&pool, FLAVOUR_LIST, 0);
  list.as.list->outside = true;
  return list;
}

void jinja_push(struct arena *arena, struct jinja_value list, struct jinja_value item) {
  struct pool pool = jj_pool_direct(arena);
  jj_push(&pool, list.as.list, item);
}

int jinja_count(struct jinja_value list) {
  return list.as.list->count;
}

struct jinja_value jinja_at(struct jinja_value list, int index) {
  return list.as.list->items[index];
}

const char *jinja_text(struct jinja_value string) {
  return string.as.string->bytes;
}

struct jinja_value jinja_map(struct arena *arena) {
  struct pool pool = jj_pool_direct(arena);
  struct jinja_value map = jj_map(&pool);
  map.as.map->outside = true;
  return map;
}

void jinja_set(struct arena *arena, struct jinja_value map, const char *key, struct jinja_value value) {
  struct pool pool = jj_pool_direct(arena);
  jj_map_put(&pool, map.as.map, jj_cstr(&pool, key), value);
}

struct jinja_value jinja_get(struct jinja_value map, const char *key) {
  uint32_t hash = jj_hash_bytes(key, strlen(key));
  for (int i = 0; map.kind == JINJA_MAP && i < map.as.map->count; i++) {
    const struct map_entry *entry = &map.as.map->items[i];
    if (entry->hash == hash && entry->key.kind == JINJA_STRING && strcmp(entry->key.as.string->bytes, key) == 0) {
      return entry->value;
    }
  }
  return (struct jinja_value){.kind = JINJA_UNDEFINED};
}
