/* Methods of maps, lists, tuples and numbers. Those that change a value refuse one that came from outside: rendering
 * never changes what it was given. */
#include "gen/jinja/support.h"

static struct jinja_value absent_none(const struct call *call, int i) {
  return jj_arg(call, i, jinja_none());
}

/* --- maps --- */

static void refuse_change(struct run *run, const char *what) {
  if (run->env->options.chat) jj_fail(run, "a chat template cannot change a %s: it runs in a sandbox", what);
}

static struct jinja_map *changeable_map(struct run *run, struct jinja_value self) {
  refuse_change(run, "map");
  if (self.as.map->outside) jj_fail(run, "the map was given to the rendering from outside and cannot be changed");
  return self.as.map;
}

static struct jinja_value map_items(struct run *run, struct jinja_value self, const struct call *call) {
  const struct jinja_map *map = self.as.map;
  struct jinja_value list = jj_new_list(run, FLAVOUR_ITEMS, map->count);
  (void)call;
  jj_spend(run, map->count);
  for (int i = 0; i < map->count; i++)
    jj_push(run->pool, list.as.list, jj_pair(run->pool, map->items[i].key, map->items[i].value));
  return list;
}

static struct jinja_value map_keys(struct run *run, struct jinja_value self, const struct call *call) {
  const struct jinja_map *map = self.as.map;
  struct jinja_value list = jj_new_list(run, FLAVOUR_KEYS, map->count);
  (void)call;
  for (int i = 0; i < map->count; i++) jj_push(run->pool, list.as.list, map->items[i].key);
  return list;
}

static struct jinja_value map_values(struct run *run, struct jinja_value self, const struct call *call) {
  const struct jinja_map *map = self.as.map;
  struct jinja_value list = jj_new_list(run, FLAVOUR_VALUES, map->count);
  (void)call;
  for (int i = 0; i < map->count; i++) jj_push(run->pool, list.as.list, map->items[i].value);
  return list;
}

static struct jinja_value map_get(struct run *run, struct jinja_value self, const struct call *call) {
  jj_require_hash(run, call->items[0]);
  const struct map_entry *entry = jj_map_find(self.as.map, call->items[0]);
  return entry != NULL ? entry->value : absent_none(call, 1);
}

static struct jinja_value map_pop(struct run *run, struct jinja_value self, const struct call *call) {
  struct jinja_map *map = changeable_map(run, self);
  jj_require_hash(run, call->items[0]);
  const struct map_entry *entry = jj_map_find(map, call->items[0]);
  if (entry == NULL && jj_given(call, 1)) return call->items[1];
  if (entry == NULL) jj_fail(run, "KeyError: %s", jj_repr(run, call->items[0]).as.string->bytes);
  struct jinja_value value = entry->value;
  jj_map_remove(map, call->items[0]);
  return value;
}

static struct jinja_value map_setdefault(struct run *run, struct jinja_value self, const struct call *call) {
  jj_require_hash(run, call->items[0]);
  const struct map_entry *entry = jj_map_find(self.as.map, call->items[0]);
  if (entry != NULL) return entry->value;
  jj_map_put(run->pool, changeable_map(run, self), call->items[0], absent_none(call, 1));
  return absent_none(call, 1);
}

void jj_update_map(struct run *run, struct jinja_map *map, struct jinja_value from) {
  if (from.kind == JINJA_MAP) {
    for (int i = 0; i < from.as.map->count; i++)
      jj_map_put(run->pool, map, from.as.map->items[i].key, from.as.map->items[i].value);
    return;
  }
  if (from.kind == JINJA_UNDEFINED) jj_fail_undefined(run, from); /* it looks for keys first: no empty list here */
  const struct jinja_list *pairs = jj_iterate(run, from);
  for (int i = 0; i < pairs->count; i++) {
    const struct jinja_list *pair = jj_iterate(run, pairs->items[i]);
    if (pair->count != 2)
      jj_fail(run, "dictionary update sequence element #%d has length %d; 2 is required", i, pair->count);
    jj_require_hash(run, pair->items[0]);
    jj_map_put(run->pool, map, pair->items[0], pair->items[1]);
  }
}

static struct jinja_value map_update(struct run *run, struct jinja_value self, const struct call *call) {
  struct jinja_map *map = changeable_map(run, self);
  if (call->count > 1) jj_fail(run, "update expected at most 1 argument, got %d", call->count);
  if (call->count == 1) jj_update_map(run, map, call->items[0]);
  for (int i = 0; i < call->keyword_count; i++) {
    jj_map_put(run->pool, map, jj_string_value(call->keywords[i].name), call->keywords[i].value);
  }
  return jinja_none();
}

static struct jinja_value map_copy(struct run *run, struct jinja_value self, const struct call *call) {
  struct jinja_value copy = jj_map(run->pool);
  (void)call;
  jj_spend(run, self.as.map->count);
  jj_update_map(run, copy.as.map, self);
  return copy;
}

static struct jinja_value map_clear(struct run *run, struct jinja_value self, const struct call *call) {
  (void)call;
  *changeable_map(run, self) = (struct jinja_map){0};
  return jinja_none();
}

static struct jinja_value map_popitem(struct run *run, struct jinja_value self, const struct call *call) {
  struct jinja_map *map = changeable_map(run, self);
  (void)call;
  if (map->count == 0) jj_fail(run, "'popitem(): dictionary is empty'");
  struct map_entry last = map->items[map->count - 1];
  jj_map_remove(map, last.key);
  return jj_pair(run->pool, last.key, last.value);
}

const struct method jj_methods_map[] = {
    {W_items, map_items, {.required = 0}},
    {W_keys, map_keys, {.required = 0}},
    {W_values, map_values, {.required = 0}},
    {W_get, map_get, {{"/key", "/default"}, 1, false}},
    {W_pop, map_pop, {{"/key", "/default"}, 1, false}},
    {W_setdefault, map_setdefault, {{"/key", "/default"}, 1, false}},
    {W_update, map_update, {.variadic = true}},
    {W_copy, map_copy, {.required = 0}},
    {W_clear, map_clear, {.required = 0}},
    {W_popitem, map_popitem, {.required = 0}},
    {.apply = NULL},
};

/* --- lists --- */

static struct jinja_list *changeable_list(struct run *run, struct jinja_value self) {
  refuse_change(run, "list");
  if (self.as.list->outside) jj_fail(run, "the list was given to the rendering from outside and cannot be changed");
  return self.as.list;
}

static struct jinja_value list_append(struct run *run, struct jinja_value self, const struct call *call) {
  jj_push(run->pool, changeable_list(run, self), call->items[0]);
  return jinja_none();
}

static struct jinja_value list_extend(struct run *run, struct jinja_value self, const struct call *call) {
  struct jinja_list *list = changeable_list(run, self);
  const struct jinja_list *more = jj_iterate(run, call->items[0]);
  int count = more->count; /* a list can be extended by itself */
  jj_spend(run, count);
  for (int i = 0; i < count; i++) jj_push(run->pool, list, more->items[i]);
  return jinja_none();
}

static struct jinja_value list_insert(struct run *run, struct jinja_value self, const struct call *call) {
  struct jinja_list *list = changeable_list(run, self);
  int64_t at = jj_arg_int(run, call, 0, 0);
  if (at < 0) at = at + list->count < 0 ? 0 : at + list->count;
  if (at > list->count) at = list->count;
  jj_push(run->pool, list, call->items[1]);
  memmove(list->items + at + 1, list->items + at, (size_t)(list->count - 1 - at) * sizeof *list->items);
  list->items[at] = call->items[1];
  return jinja_none();
}

static struct jinja_value take_at(struct jinja_list *list, int64_t at) {
  struct jinja_value item = list->items[at];
  memmove(list->items + at, list->items + at + 1, (size_t)(list->count - 1 - at) * sizeof *list->items);
  list->count--;
  return item;
}

static struct jinja_value list_pop(struct run *run, struct jinja_value self, const struct call *call) {
  struct jinja_list *list = changeable_list(run, self);
  int64_t at = jj_arg_int(run, call, 0, -1);
  if (at < 0) at += list->count;
  if (list->count == 0) jj_fail(run, "pop from empty list");
  if (at < 0 || at >= list->count) jj_fail(run, "pop index out of range");
  return take_at(list, at);
}

static int find_item(struct run *run, struct jinja_value self, struct jinja_value item) {
  for (int i = 0; i < self.as.list->count; i++) {
    if (jj_same(run, jj_item(self.as.list, i), item)) return i;
  }
  return -1;
}

static struct jinja_value list_remove(struct run *run, struct jinja_value self, const struct call *call) {
  struct jinja_list *list = changeable_list(run, self);
  int at = find_item(run, self, call->items[0]);
  if (at < 0) jj_fail(run, "list.remove(x): x not in list");
  take_at(list, at);
  return jinja_none();
}

static struct jinja_value list_index(struct run *run, struct jinja_value self, const struct call *call) {
  int at = find_item(run, self, call->items[0]);
  if (at < 0) jj_fail(run, "%s is not in list", jj_repr(run, call->items[0]).as.string->bytes);
  return jinja_int(at);
}

static struct jinja_value list_count(struct run *run, struct jinja_value self, const struct call *call) {
  int64_t count = 0;
  for (int i = 0; i < self.as.list->count; i++) count += jj_same(run, jj_item(self.as.list, i), call->items[0]);
  return jinja_int(count);
}

static struct jinja_value list_copy(struct run *run, struct jinja_value self, const struct call *call) {
  const struct jinja_list *list = self.as.list;
  struct jinja_value copy = jj_new_list(run, FLAVOUR_LIST, list->count);
  (void)call;
  for (int i = 0; i < list->count; i++) jj_push(run->pool, copy.as.list, list->items[i]);
  return copy;
}

static struct jinja_value list_clear(struct run *run, struct jinja_value self, const struct call *call) {
  (void)call;
  changeable_list(run, self)->count = 0;
  return jinja_none();
}

static struct jinja_value list_reverse(struct run *run, struct jinja_value self, const struct call *call) {
  struct jinja_list *list = changeable_list(run, self);
  (void)call;
  for (int i = 0, j = list->count - 1; i < j; i++, j--) {
    struct jinja_value item = list->items[i];
    list->items[i] = list->items[j];
    list->items[j] = item;
  }
  return jinja_none();
}

static struct jinja_value list_sort(struct run *run, struct jinja_value self, const struct call *call) {
  struct jinja_list *list = changeable_list(run, self);
  struct jinja_value *keys = jj_alloc(run->pool, (size_t)(list->count + 1) * sizeof *keys);
  if (list->count > 0) memcpy(keys, list->items, (size_t)list->count * sizeof *keys);
  jj_sort(run, keys, list->items, list->count, jj_arg_true(run, call, 0, false), false);
  return jinja_none();
}

const struct method jj_methods_list[] = {
    {W_append, list_append, {{"/object"}, 1, false}},
    {W_extend, list_extend, {{"/iterable"}, 1, false}},
    {W_insert, list_insert, {{"/index", "/object"}, 2, false}},
    {W_pop, list_pop, {{"/index"}, 0, false}},
    {W_remove, list_remove, {{"/value"}, 1, false}},
    {W_index, list_index, {{"/value"}, 1, false}},
    {W_count, list_count, {{"/value"}, 1, false}},
    {W_copy, list_copy, {.required = 0}},
    {W_clear, list_clear, {.required = 0}},
    {W_reverse, list_reverse, {.required = 0}},
    {W_sort, list_sort, {{"reverse"}, 0, false}},
    {.apply = NULL},
};

const struct method jj_methods_tuple[] = {
    {W_index, list_index, {{"/value"}, 1, false}},
    {W_count, list_count, {{"/value"}, 1, false}},
    {.apply = NULL},
};

/* --- numbers --- */

static struct jinja_value number_is_integer(struct run *run, struct jinja_value self, const struct call *call) {
  (void)run, (void)call;
  if (self.kind != JINJA_DOUBLE) return jinja_bool(true);
  return jinja_bool(self.as.real >= -9e18 && self.as.real <= 9e18 && (double)(int64_t)self.as.real == self.as.real);
}

static struct jinja_value number_bit_length(struct run *run, struct jinja_value self, const struct call *call) {
  (void)call;
  if (self.kind == JINJA_DOUBLE) jj_fail(run, "'float object' has no attribute 'bit_length'");
  int64_t value = jj_as_int(self);
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  int bits = 0;
  for (; rest > 0; rest >>= 1) bits++;
  return jinja_int(bits);
}

const struct method jj_methods_number[] = {
    {W_is_integer, number_is_integer, {.required = 0}},
    {W_bit_length, number_bit_length, {.required = 0}},
    {.apply = NULL},
};
