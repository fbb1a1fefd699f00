/* Attributes, items and slices. */
#include <stdlib.h>
#include <string.h>

#include "gen/jinja/run.h"

static struct jinja_value method_object(struct run *run, struct jinja_value self, const struct method *method) {
  struct method_object *object = jj_alloc_zero(run->pool, sizeof *object);
  object->head.type = OBJECT_METHOD;
  object->self = self;
  object->method = method;
  return (struct jinja_value){.kind = JINJA_OBJECT, .as.object = object};
}

static struct jinja_value group_attr(struct run *run, struct jinja_value object, struct jinja_string *name) {
  if (object.as.list->flavour == FLAVOUR_GROUP && name->word == W_grouper) return object.as.list->items[0];
  if (object.as.list->flavour == FLAVOUR_GROUP && name->word == W_list) return object.as.list->items[1];
  return jj_undefined_attr(run, object, jj_string_value(name));
}

/* The value's own attribute: a method, or what an object has. Undefined and nameless where there is none. */
static bool own_attr(struct run *run, struct jinja_value object, struct jinja_string *name, struct jinja_value *out) {
  const struct method *method = name->word != W_none ? jj_find_method(object, name->word) : NULL;
  if (method == NULL) return false;
  *out = method_object(run, object, method);
  return true;
}

struct jinja_value jj_getattr(struct run *run, struct jinja_value object, struct jinja_string *name) {
  struct jinja_value found;
  switch (object.kind) {
  case JINJA_UNDEFINED:
    if (jj_is_chainable(run, object)) return object;
    jj_fail_undefined(run, object);
  case JINJA_OBJECT:
    return jj_object_attr(run, object, name);
  case JINJA_MAP: {
    if (own_attr(run, object, name, &found)) return found;
    struct map_entry *entry = jj_map_find_string(object.as.map, name);
    return entry != NULL ? entry->value : jj_undefined_attr(run, object, jj_string_value(name));
  }
  default:
    if (own_attr(run, object, name, &found)) return found;
    if (object.kind == JINJA_LIST) return group_attr(run, object, name);
    return jj_undefined_attr(run, object, jj_string_value(name));
  }
}

static bool list_item(struct jinja_value object, struct jinja_value key, struct jinja_value *out) {
  const struct jinja_list *list = object.as.list;
  if (!jj_is_integral(key) || list->flavour == FLAVOUR_GENERATOR) return false;
  if (list->flavour == FLAVOUR_ITEMS || list->flavour == FLAVOUR_KEYS || list->flavour == FLAVOUR_VALUES) return false;
  int64_t index = jj_as_int(key);
  if (index < 0) index += list->count;
  if (index < 0 || index >= list->count) return false;
  *out = jj_item(list, index);
  return true;
}

static bool string_item(struct run *run, struct jinja_value object, struct jinja_value key, struct jinja_value *out) {
  const struct jinja_string *string = object.as.string;
  if (!jj_is_integral(key)) return false;
  int64_t index = jj_as_int(key), count = (int64_t)jj_utf8_count(string->bytes, string->length);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return false;
  size_t at = jj_utf8_offset(string->bytes, string->length, (size_t)index);
  int size;
  jj_utf8_decode(string->bytes + at, string->length - at, &size);
  *out = jj_text(run->pool, string->bytes + at, (size_t)size);
  out->safe = object.safe;
  return true;
}

struct jinja_value jj_getitem(struct run *run, struct jinja_value object, struct jinja_value key) {
  struct jinja_value found;
  if (object.kind == JINJA_UNDEFINED) {
    if (jj_is_chainable(run, object)) return object;
    jj_fail_undefined(run, object);
  }
  if (object.kind == JINJA_MAP && jj_hashable(key)) {
    jj_require_hash(run, key);
    struct map_entry *entry = jj_map_find(object.as.map, key);
    if (entry != NULL) return entry->value;
  }
  if (object.kind == JINJA_LIST && list_item(object, key, &found)) return found;
  if (object.kind == JINJA_STRING && string_item(run, object, key, &found)) return found;
  if (key.kind == JINJA_STRING) {
    struct jinja_string *name = jj_intern(run->env, key.as.string->bytes, key.as.string->length);
    if (object.kind == JINJA_OBJECT) return jj_object_attr(run, object, name);
    if (own_attr(run, object, name, &found)) return found;
    if (object.kind == JINJA_LIST) return group_attr(run, object, name);
  }
  return jj_undefined_attr(run, object, key);
}

/* --- slices --- */

static int64_t slice_bound(struct run *run, struct jinja_value bound, int64_t absent) {
  if (bound.kind == JINJA_NONE) return absent;
  if (bound.kind == JINJA_UNDEFINED) jj_fail_undefined(run, bound);
  if (!jj_is_integral(bound)) jj_fail(run, "slice indices must be integers or None or have an __index__ method");
  return jj_as_int(bound);
}

static int64_t clamp(int64_t index, int64_t count, int64_t low, int64_t high) {
  if (index < 0) index += count;
  return index < low ? low : index > high ? high : index;
}

struct slice {
  int64_t start, stop, step, count;
};

static struct slice resolve_slice(struct run *run, int64_t count, struct jinja_value start, struct jinja_value stop,
                                  struct jinja_value step) {
  int64_t by = slice_bound(run, step, 1);
  if (by == 0) jj_fail(run, "slice step cannot be zero");
  int64_t low = by > 0 ? 0 : -1, high = by > 0 ? count : count - 1;
  int64_t from =
      start.kind == JINJA_NONE ? (by > 0 ? 0 : count - 1) : clamp(slice_bound(run, start, 0), count, low, high);
  int64_t to = stop.kind == JINJA_NONE ? (by > 0 ? count : -1) : clamp(slice_bound(run, stop, 0), count, low, high);
  int64_t span = by > 0 ? to - from : from - to, size = by > 0 ? by : by == INT64_MIN ? INT64_MAX : -by;
  return (struct slice){from, to, by, span > 0 ? (span - 1) / size + 1 : 0};
}

static struct jinja_value slice_string(struct run *run, struct jinja_value object, struct slice slice) {
  const struct jinja_string *string = object.as.string;
  if (slice.step == 1) {
    size_t from = jj_utf8_offset(string->bytes, string->length, (size_t)slice.start);
    size_t length = jj_utf8_offset(string->bytes + from, string->length - from, (size_t)slice.count);
    struct jinja_string *part = jj_new_text(run, length);
    memcpy(part->bytes, string->bytes + from, length);
    struct jinja_value value = jj_string_value(part);
    value.safe = object.safe;
    return value;
  }
  const struct jinja_list *list = jj_iterate(run, object);
  struct buffer *before = jj_capture_begin(run);
  for (int64_t i = 0; i < slice.count; i++) jj_write_str(run, list->items[slice.start + i * slice.step]);
  struct jinja_value value = jj_capture_end(run, before);
  value.safe = object.safe;
  return value;
}

/* A range again, whose end is where the slice ends, as in Python: range(10)[2:8:3] is range(2, 8, 3). */
static struct jinja_value slice_range(struct run *run, const struct jinja_list *range, struct slice slice) {
  uint64_t start = (uint64_t)range->start, step = (uint64_t)range->step;
  return jj_range(run->pool, (int64_t)(start + (uint64_t)slice.start * step),
                  (int64_t)(start + (uint64_t)slice.stop * step), (int64_t)(step * (uint64_t)slice.step),
                  (int)slice.count);
}

struct jinja_value jj_slice(struct run *run, struct jinja_value object, struct jinja_value start,
                            struct jinja_value stop, struct jinja_value step) {
  if (jj_is_chainable(run, object)) return object;
  if (object.kind == JINJA_UNDEFINED) jj_fail_undefined(run, object);
  bool list = object.kind == JINJA_LIST &&
              (object.as.list->flavour <= FLAVOUR_RANGE || object.as.list->flavour == FLAVOUR_GROUP);
  if (!list && object.kind != JINJA_STRING) jj_fail(run, "'%s' object is not subscriptable", jj_type_name(object));
  struct slice slice = resolve_slice(run, jj_length(run, object), start, stop, step);
  if (object.kind == JINJA_STRING) return slice_string(run, object, slice);
  const struct jinja_list *from = object.as.list;
  if (from->flavour == FLAVOUR_RANGE) return slice_range(run, from, slice);
  enum flavour flavour = from->flavour == FLAVOUR_GROUP ? FLAVOUR_TUPLE : (enum flavour)from->flavour;
  struct jinja_value part = jj_new_list(run, flavour, (int)slice.count);
  for (int64_t i = 0; i < slice.count; i++) jj_push(run->pool, part.as.list, from->items[slice.start + i * slice.step]);
  return part;
}

struct jinja_value jj_getpath(struct run *run, struct jinja_value object, struct jinja_value path) {
  if (path.kind != JINJA_STRING) return jj_getitem(run, object, path);
  const char *at = path.as.string->bytes;
  while (true) {
    size_t length = strcspn(at, ".");
    bool number = length > 0 && length < 18 && strspn(at, "0123456789") == length;
    struct jinja_value key = number ? jinja_int(strtoll(at, NULL, 10)) : jj_text(run->pool, at, length);
    object = jj_getitem(run, object, key);
    if (at[length] == '\0') return object;
    at += length + 1;
  }
}
