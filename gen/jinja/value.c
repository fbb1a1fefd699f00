#include "gen/jinja/value.h"

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

struct jinja_value jj_list(struct pool *pool, enum flavour flavour, int capacity) {
  struct jinja_list *list = jj_alloc_zero(pool, sizeof *list);
  list->flavour = (uint8_t)flavour;
  if (capacity > 0) {
    list->items = jj_alloc(pool, (size_t)capacity * sizeof *list->items);
    list->capacity = capacity;
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

struct jinja_value jj_range(struct pool *pool, int64_t start, int64_t stop, int64_t step, int count) {
  struct jinja_value range = jj_list(pool, FLAVOUR_RANGE, 0);
  range.as.list->start = start;
  range.as.list->stop = stop;
  range.as.list->step = step;
  range.as.list->count = count;
  return range;
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

static void add_to_index(struct jinja_map *map, int number) {
  uint32_t mask = (uint32_t)map->index_size - 1, at = map->items[number].hash & mask;
  while (map->index[at] != 0) at = (at + 1) & mask;
  map->index[at] = number + 1;
}

static void rebuild_index(struct jinja_map *map) {
  memset(map->index, 0, (size_t)map->index_size * sizeof *map->index);
  for (int i = 0; i < map->count; i++) add_to_index(map, i);
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
  if (map->index != NULL) add_to_index(map, map->count - 1);
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

/* --- names of types --- */

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
