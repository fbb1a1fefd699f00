/* pprint: Python's pprint.pformat at its usual width, but that long strings stay in one piece. */
#include "gen/jinja/support.h"

enum { WIDTH = 80 };

static void plain(struct run *run, struct jinja_value value);

/* A map's entries in the order of their keys, or in their own order where keys of several types have none. */
static const struct map_entry *sorted_entries(struct run *run, const struct jinja_map *map) {
  struct jinja_value *keys = jj_alloc(run->pool, (size_t)(map->count + 1) * sizeof *keys),
                     *indices = jj_alloc(run->pool, (size_t)(map->count + 1) * sizeof *indices);
  struct map_entry *entries = jj_alloc(run->pool, (size_t)(map->count + 1) * sizeof *entries);
  bool comparable = true;
  for (int i = 0; i < map->count; i++) {
    bool this_one = true;
    keys[i] = map->items[i].key;
    indices[i] = jinja_int(i);
    jj_order(keys[0], keys[i], &this_one);
    comparable &= this_one;
  }
  if (comparable) jj_sort(run, keys, indices, map->count, false, true);
  for (int i = 0; i < map->count; i++) entries[i] = map->items[indices[i].as.integer];
  return entries;
}

static bool is_tuple(const struct jinja_list *list) {
  return list->flavour == FLAVOUR_TUPLE || list->flavour == FLAVOUR_GROUP;
}

static void put(struct run *run, const char *text) {
  jj_write(run, text, strlen(text));
}

static void plain_list(struct run *run, const struct jinja_list *list) {
  put(run, is_tuple(list) ? "(" : "[");
  for (int i = 0; i < list->count; i++) {
    if (i > 0) put(run, ", ");
    plain(run, list->items[i]);
  }
  put(run, !is_tuple(list) ? "]" : list->count == 1 ? ",)" : ")");
}

static void plain_map(struct run *run, const struct jinja_map *map) {
  const struct map_entry *entries = sorted_entries(run, map);
  put(run, "{");
  for (int i = 0; i < map->count; i++) {
    if (i > 0) put(run, ", ");
    plain(run, entries[i].key);
    put(run, ": ");
    plain(run, entries[i].value);
  }
  put(run, "}");
}

/* In one line. */
static void plain(struct run *run, struct jinja_value value) {
  jj_enter(run);
  if (value.kind == JINJA_MAP) {
    plain_map(run, value.as.map);
  } else if (value.kind == JINJA_LIST && (value.as.list->flavour == FLAVOUR_LIST || is_tuple(value.as.list))) {
    plain_list(run, value.as.list);
  } else {
    jj_write_repr(run, value);
  }
  jj_leave(run);
}

static int64_t plain_width(struct run *run, struct jinja_value value) {
  struct buffer *before = jj_capture_begin(run);
  plain(run, value);
  return jj_length(run, jj_capture_end(run, before));
}

static void next_line(struct run *run, int64_t indent) {
  put(run, ",\n");
  for (int64_t i = 0; i < indent; i++) put(run, " ");
}

/* `allowance`: how many closing brackets will follow on the last line. */
static void pretty(struct run *run, struct jinja_value value, int64_t indent, int64_t allowance) {
  bool list = value.kind == JINJA_LIST && (value.as.list->flavour == FLAVOUR_LIST || is_tuple(value.as.list));
  jj_enter(run);
  if ((value.kind != JINJA_MAP && !list) || plain_width(run, value) <= WIDTH - indent - allowance) {
    plain(run, value);
  } else if (value.kind == JINJA_MAP) {
    const struct map_entry *entries = sorted_entries(run, value.as.map);
    int count = value.as.map->count;
    put(run, "{");
    for (int i = 0; i < count; i++) {
      plain(run, entries[i].key);
      put(run, ": ");
      pretty(run, entries[i].value, indent + 1 + plain_width(run, entries[i].key) + 2,
             i + 1 == count ? allowance + 1 : 1);
      if (i + 1 < count) next_line(run, indent + 1);
    }
    put(run, "}");
  } else {
    const struct jinja_list *items = value.as.list;
    const char *close = !is_tuple(items) ? "]" : items->count == 1 ? ",)" : ")";
    put(run, is_tuple(items) ? "(" : "[");
    for (int i = 0; i < items->count; i++) {
      pretty(run, items->items[i], indent + 1, i + 1 == items->count ? allowance + (int64_t)strlen(close) : 1);
      if (i + 1 < items->count) next_line(run, indent + 1);
    }
    put(run, close);
  }
  jj_leave(run);
}

static struct jinja_value filter_pprint(struct run *run, struct jinja_value input, const struct call *call) {
  struct buffer *before = jj_capture_begin(run);
  (void)call;
  pretty(run, input, 0, 0);
  return jj_capture_end(run, before);
}

const struct filter jj_filters_pprint[] = {
    {"pprint", filter_pprint, {.required = 0}},
    {.name = NULL},
};
