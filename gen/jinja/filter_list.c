/* Filters on sequences and maps. */
#include "gen/jinja/support.h"

FILTER(filter_length) {
  (void)call;
  return jinja_int(jj_length(run, input));
}

FILTER(filter_first) {
  (void)call;
  if (input.kind == JINJA_LIST && input.as.list->flavour == FLAVOUR_GENERATOR &&
      input.as.list->cursor < input.as.list->count) {
    return input.as.list->items[input.as.list->cursor++]; /* the rest stays for the next reader */
  }
  struct jinja_value pair;
  bool loop = input.kind == JINJA_OBJECT && ((struct object *)input.as.object)->type == OBJECT_LOOP;
  if (loop && jj_loop_next(run, input, &pair)) return pair;
  const struct jinja_list *items = jj_sequence(run, input);
  if (items->count == 0) return jj_undefined_hint(run, "No first item, sequence was empty.");
  return jj_item(items, 0);
}

static const struct jinja_list *reversible(struct run *run, struct jinja_value input) {
  bool generator = input.kind == JINJA_LIST && input.as.list->flavour == FLAVOUR_GENERATOR;
  if (generator) jj_fail(run, "'generator' object is not reversible");
  return jj_iterate(run, input);
}

FILTER(filter_last) {
  (void)call;
  const struct jinja_list *items = reversible(run, input);
  if (items->count == 0) return jj_undefined_hint(run, "No last item, sequence was empty.");
  struct jinja_value last = items->items[items->count - 1];
  return input.kind == JINJA_STRING ? jj_like(last, input) : last;
}

static struct jinja_value reversed_list(struct run *run, const struct jinja_list *items, enum flavour flavour) {
  struct jinja_value list = jj_new_list(run, flavour, items->count);
  for (int i = items->count; i-- > 0;) jj_push(run->pool, list.as.list, items->items[i]);
  return list;
}

FILTER(filter_reverse) {
  (void)call;
  if (input.kind == JINJA_STRING) {
    const struct jinja_list *items = jj_iterate(run, input);
    struct jinja_value backwards = reversed_list(run, items, FLAVOUR_LIST);
    struct jinja_string *none = jj_string_new(run->pool, "", 0);
    return jj_like(jj_join(run, none, backwards.as.list->items, items->count), input);
  }
  return reversed_list(run, jj_iterate(run, input), FLAVOUR_GENERATOR);
}

FILTER(filter_list) {
  const struct jinja_list *items = jj_iterate(run, input);
  struct jinja_value list = jj_new_list(run, FLAVOUR_LIST, items->count);
  (void)call;
  for (int i = 0; i < items->count; i++) jj_push(run->pool, list.as.list, items->items[i]);
  return list;
}

/* --- keys: what sort, unique, groupby, min and max look at --- */

struct key {
  struct jinja_value attribute; /* none: the item itself */
  struct jinja_value fallback;  /* for a missing attribute; undefined without a name: none */
  bool fold_case;
};

static struct jinja_value folded(struct run *run, struct jinja_value value, bool fold) {
  return fold && value.kind == JINJA_STRING ? jj_map_case(run, value, 'l') : value;
}

static struct jinja_value key_of(struct run *run, const struct key *key, struct jinja_value item) {
  if (key->attribute.kind != JINJA_NONE) {
    item = jj_getpath(run, item, key->attribute);
    bool has_fallback = !(key->fallback.kind == JINJA_UNDEFINED && key->fallback.as.object == NULL);
    if (item.kind == JINJA_UNDEFINED && has_fallback) item = key->fallback;
  }
  return folded(run, item, key->fold_case);
}

static struct jinja_value *keys_of(struct run *run, const struct key *key, const struct jinja_list *items) {
  struct jinja_value *keys = jj_alloc(run->pool, (size_t)(items->count + 1) * sizeof *keys);
  for (int i = 0; i < items->count; i++) keys[i] = key_of(run, key, items->items[i]);
  return keys;
}

/* sort(attribute="a,b.c"): the key is the list of all of them. */
static struct jinja_value multi_key(struct run *run, const struct key *key, struct jinja_value item) {
  if (key->attribute.kind != JINJA_STRING || strchr(key->attribute.as.string->bytes, ',') == NULL)
    return key_of(run, key, item);
  struct jinja_value list = jj_list(run->pool, FLAVOUR_LIST, 0);
  for (const char *at = key->attribute.as.string->bytes;;) {
    size_t length = strcspn(at, ",");
    struct key one = {jj_text(run->pool, at, length), {0}, key->fold_case};
    jj_push(run->pool, list.as.list, key_of(run, &one, item));
    if (at[length] == '\0') return list;
    at += length + 1;
  }
}

FILTER(filter_sort) {
  bool reverse = jj_arg_true(run, call, 0, false);
  struct key key = {jj_arg(call, 2, jinja_none()), {0}, !jj_arg_true(run, call, 1, false)};
  const struct jinja_list *items = jj_iterate(run, input);
  struct jinja_value sorted = jj_new_list(run, FLAVOUR_LIST, items->count);
  struct jinja_value *keys = jj_alloc(run->pool, (size_t)(items->count + 1) * sizeof *keys);
  for (int i = 0; i < items->count; i++) {
    jj_push(run->pool, sorted.as.list, items->items[i]);
    keys[i] = multi_key(run, &key, items->items[i]);
  }
  jj_sort(run, keys, sorted.as.list->items, items->count, reverse, true);
  return sorted;
}

FILTER(filter_unique) {
  struct key key = {jj_arg(call, 1, jinja_none()), {0}, !jj_arg_true(run, call, 0, false)};
  const struct jinja_list *items = jj_iterate(run, input);
  struct jinja_value kept = jj_list(run->pool, FLAVOUR_GENERATOR, 0), seen = jj_map(run->pool);
  for (int i = 0; i < items->count; i++) {
    struct jinja_value at = key_of(run, &key, items->items[i]);
    jj_spend(run, 1);
    jj_require_hash(run, at);
    if (jj_map_find(seen.as.map, at) != NULL) continue;
    jj_map_put(run->pool, seen.as.map, at, jinja_none());
    jj_push(run->pool, kept.as.list, items->items[i]);
  }
  return kept;
}

static struct jinja_value extreme(struct run *run, struct jinja_value input, const struct call *call, bool greatest) {
  struct key key = {jj_arg(call, 1, jinja_none()), {0}, !jj_arg_true(run, call, 0, false)};
  const struct jinja_list *items = jj_iterate(run, input);
  if (items->count == 0) return jj_undefined_hint(run, "No aggregated item, sequence was empty.");
  const struct jinja_value *keys = keys_of(run, &key, items);
  int best = 0;
  for (int i = 1; i < items->count; i++) {
    if (greatest ? jj_less(run, keys[best], keys[i]) : jj_less(run, keys[i], keys[best])) best = i;
  }
  return items->items[best];
}

FILTER(filter_min) {
  return extreme(run, input, call, false);
}
FILTER(filter_max) {
  return extreme(run, input, call, true);
}

FILTER(filter_sum) {
  struct key key = {jj_arg(call, 0, jinja_none()), {0}, false};
  const struct jinja_list *items = jj_iterate(run, input);
  struct jinja_value total = jj_arg(call, 1, jinja_int(0));
  if (total.kind == JINJA_STRING) jj_fail(run, "sum() can't sum strings [use ''.join(seq) instead]");
  for (int i = 0; i < items->count; i++) total = jj_binary(run, OP_ADD, total, key_of(run, &key, items->items[i]));
  return total;
}

/* --- groups --- */

static struct jinja_value new_group(struct run *run, struct jinja_value grouper) {
  struct jinja_value group = jj_list(run->pool, FLAVOUR_GROUP, 2);
  jj_push(run->pool, group.as.list, grouper);
  jj_push(run->pool, group.as.list, jj_list(run->pool, FLAVOUR_LIST, 0));
  return group;
}

FILTER(filter_groupby) {
  struct key key = {call->items[0], jj_arg(call, 1, (struct jinja_value){0}), !jj_arg_true(run, call, 2, false)};
  struct key shown = {key.attribute, key.fallback, false};
  struct jinja_value items = filter_list(run, input, call), groups = jj_list(run->pool, FLAVOUR_LIST, 0);
  struct jinja_value *keys = keys_of(run, &key, items.as.list), current = {0};
  jj_sort(run, keys, items.as.list->items, items.as.list->count, false, false);
  for (int i = 0; i < items.as.list->count; i++) {
    if (i == 0 || !jj_same(run, keys[i - 1], keys[i])) {
      current = new_group(run, key_of(run, &shown, items.as.list->items[i]));
      jj_push(run->pool, groups.as.list, current);
    }
    jj_push(run->pool, current.as.list->items[1].as.list, items.as.list->items[i]);
  }
  return groups;
}

FILTER(filter_batch) {
  int64_t size = jj_arg_int(run, call, 0, 1);
  struct jinja_value fill = jj_arg(call, 1, jinja_none()), rows = jj_list(run->pool, FLAVOUR_GENERATOR, 0);
  struct jinja_value row = jj_list(run->pool, FLAVOUR_LIST, 0);
  const struct jinja_list *items = jj_iterate(run, input);
  for (int i = 0; i < items->count; i++) {
    jj_spend(run, 1);
    if (row.as.list->count == size) { /* at a size of 0 the first row, which is empty, as in Jinja2 */
      jj_push(run->pool, rows.as.list, row);
      row = jj_list(run->pool, FLAVOUR_LIST, 0);
    }
    jj_push(run->pool, row.as.list, items->items[i]);
  }
  for (; fill.kind != JINJA_NONE && items->count > 0 && row.as.list->count < size; jj_spend(run, 1))
    jj_push(run->pool, row.as.list, fill);
  if (items->count > 0) jj_push(run->pool, rows.as.list, row);
  return rows;
}

FILTER(filter_slice) {
  int64_t slices = jj_arg_int(run, call, 0, 1);
  struct jinja_value fill = jj_arg(call, 1, jinja_none()), rows = jj_list(run->pool, FLAVOUR_GENERATOR, 0);
  const struct jinja_list *items = jj_iterate(run, input);
  if (slices == 0) jj_fail(run, "integer division or modulo by zero");
  int64_t size = slices > 0 ? items->count / slices : 0, longer = slices > 0 ? items->count % slices : 0, at = 0;
  for (int64_t i = 0; i < slices; i++) {
    struct jinja_value row = jj_list(run->pool, FLAVOUR_LIST, 0);
    int64_t count = size + (i < longer);
    jj_spend(run, 1 + count);
    for (int64_t j = 0; j < count; j++) jj_push(run->pool, row.as.list, items->items[at++]);
    if (fill.kind != JINJA_NONE && i >= longer && longer >= 0) {
      if (i >= longer) jj_push(run->pool, row.as.list, fill);
    }
    jj_push(run->pool, rows.as.list, row);
  }
  return rows;
}

/* --- maps --- */

static struct jinja_value pairs_of(struct run *run, const struct jinja_map *map, enum flavour flavour) {
  struct jinja_value list = jj_new_list(run, flavour, map->count);
  jj_spend(run, map->count);
  for (int i = 0; i < map->count; i++)
    jj_push(run->pool, list.as.list, jj_pair(run->pool, map->items[i].key, map->items[i].value));
  return list;
}

FILTER(filter_items) {
  (void)call;
  if (input.kind == JINJA_UNDEFINED) return jj_list(run->pool, FLAVOUR_GENERATOR, 0);
  if (input.kind != JINJA_MAP) jj_fail(run, "Can only get item pairs from a mapping.");
  return pairs_of(run, input.as.map, FLAVOUR_GENERATOR);
}

FILTER(filter_dictsort) {
  bool fold = !jj_arg_true(run, call, 0, false), reverse = jj_arg_true(run, call, 2, false);
  struct jinja_value by = jj_arg(call, 1, jj_cstr(run->pool, "key"));
  bool by_value = by.kind == JINJA_STRING && strcmp(by.as.string->bytes, "value") == 0;
  if (!by_value && !(by.kind == JINJA_STRING && strcmp(by.as.string->bytes, "key") == 0)) {
    jj_fail(run, "You can only sort by either \"key\" or \"value\"");
  }
  if (input.kind == JINJA_UNDEFINED) jj_fail_undefined(run, input);
  if (input.kind != JINJA_MAP) jj_fail(run, "'%s object' has no attribute 'items'", jj_type_name(input));
  const struct jinja_map *map = input.as.map;
  struct jinja_value pairs = pairs_of(run, map, FLAVOUR_LIST);
  struct jinja_value *keys = jj_alloc(run->pool, (size_t)(map->count + 1) * sizeof *keys);
  for (int i = 0; i < map->count; i++) keys[i] = folded(run, by_value ? map->items[i].value : map->items[i].key, fold);
  jj_sort(run, keys, pairs.as.list->items, map->count, reverse, true);
  return pairs;
}

/* --- join --- */

/* Has the value an __html__ in Python? A chainable undefined has. */
static bool is_markup(const struct run *run, struct jinja_value value) {
  return jj_is_chainable(run, value) || (value.kind == JINJA_STRING && value.safe);
}

FILTER(filter_join) {
  struct jinja_value separator = jj_arg(call, 0, jj_cstr(run->pool, ""));
  struct key key = {jj_arg(call, 1, jinja_none()), {0}, false};
  const struct jinja_list *items = jj_iterate(run, input);
  struct jinja_value *texts = keys_of(run, &key, items);
  bool safe = separator.kind == JINJA_STRING && separator.safe && run->autoescape;
  for (int i = 0; i < items->count && run->autoescape; i++) safe |= is_markup(run, texts[i]);
  jj_spend(run, items->count);
  for (int i = 0; i < items->count; i++) texts[i] = safe ? jj_escape(run, texts[i]) : jj_str(run, texts[i]);
  separator = safe ? jj_escape(run, separator) : jj_str(run, separator);
  struct jinja_value text = jj_join(run, separator.as.string, texts, items->count);
  text.safe = safe;
  return text;
}

const struct filter jj_filters_list[] = {
    {"length", filter_length, {.required = 0}},
    {"count", filter_length, {.required = 0}},
    {"first", filter_first, {.required = 0}},
    {"last", filter_last, {.required = 0}},
    {"reverse", filter_reverse, {.required = 0}},
    {"list", filter_list, {.required = 0}},
    {"sort", filter_sort, {{"reverse", "case_sensitive", "attribute"}, 0, false}},
    {"unique", filter_unique, {{"case_sensitive", "attribute"}, 0, false}},
    {"min", filter_min, {{"case_sensitive", "attribute"}, 0, false}},
    {"max", filter_max, {{"case_sensitive", "attribute"}, 0, false}},
    {"sum", filter_sum, {{"attribute", "start"}, 0, false}},
    {"groupby", filter_groupby, {{"attribute", "default", "case_sensitive"}, 1, false}},
    {"batch", filter_batch, {{"linecount", "fill_with"}, 1, false}},
    {"slice", filter_slice, {{"slices", "fill_with"}, 1, false}},
    {"items", filter_items, {.required = 0}},
    {"dictsort", filter_dictsort, {{"case_sensitive", "by", "reverse"}, 0, false}},
    {"join", filter_join, {{"d", "attribute"}, 0, false}},
    {.name = NULL},
};
