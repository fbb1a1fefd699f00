#include <limits.h>
#include <string.h>

#include "gen/jinja/run.h"

struct jinja_string *jj_new_text(struct run *run, size_t length) {
  if (length > run->max_output) jj_fail(run, "the output is too large: the limit is %zu bytes", run->max_output);
  jj_spend(run, (int64_t)(length / 64));
  return jj_string_new(run->pool, NULL, length);
}

struct jinja_value jj_new_list(struct run *run, enum flavour flavour, int capacity) {
  jj_spend(run, capacity / 4);
  return jj_list(run->pool, flavour, capacity);
}

static struct jinja_list *characters(struct run *run, struct jinja_value value) {
  const struct jinja_string *string = value.as.string;
  size_t count = jj_utf8_count(string->bytes, string->length);
  struct jinja_value list = jj_new_list(run, FLAVOUR_LIST, (int)count);
  jj_spend(run, (int64_t)count);
  for (size_t at = 0; at < string->length;) {
    int size;
    jj_utf8_decode(string->bytes + at, string->length - at, &size);
    struct jinja_value item = jj_text(run->pool, string->bytes + at, (size_t)size);
    jj_push(run->pool, list.as.list, item);
    at += (size_t)size;
  }
  return list.as.list;
}

static struct jinja_list *map_keys(struct run *run, const struct jinja_map *map) {
  struct jinja_value list = jj_new_list(run, FLAVOUR_KEYS, map->count);
  for (int i = 0; i < map->count; i++) jj_push(run->pool, list.as.list, map->items[i].key);
  return list.as.list;
}

/* What is left of a generator, which is thereby used up. */
static struct jinja_list *drain(struct run *run, struct jinja_list *generator) {
  struct jinja_value rest = jj_new_list(run, FLAVOUR_LIST, generator->count - generator->cursor);
  for (; generator->cursor < generator->count; generator->cursor++) {
    jj_push(run->pool, rest.as.list, generator->items[generator->cursor]);
  }
  return rest.as.list;
}

bool jj_loop_next(struct run *run, struct jinja_value loop, struct jinja_value *pair) {
  struct loop_object *object = loop.as.object;
  if (object->index0 + 1 >= object->length) return false;
  *pair = jj_pair(run->pool, jj_item(object->items, ++object->index0), loop);
  return true;
}

static struct jinja_list *rest_of_loop(struct run *run, struct jinja_value loop) {
  const struct loop_object *object = loop.as.object;
  struct jinja_value rest = jj_new_list(run, FLAVOUR_LIST, object->length - object->index0 - 1), pair;
  while (jj_loop_next(run, loop, &pair)) jj_push(run->pool, rest.as.list, pair);
  return rest.as.list;
}

/* Writes a range's items out, once. */
static void expand(struct run *run, struct jinja_list *range) {
  struct jinja_value items = jj_new_list(run, FLAVOUR_LIST, range->count);
  for (int i = 0; i < range->count; i++) jj_push(run->pool, items.as.list, jj_item(range, i));
  range->items = items.as.list->items;
}

struct jinja_list *jj_iterate(struct run *run, struct jinja_value value) {
  struct jinja_list *list = jj_sequence(run, value);
  if (list->items == NULL && list->count > 0) expand(run, list);
  return list;
}

struct jinja_list *jj_sequence(struct run *run, struct jinja_value value) {
  switch (value.kind) {
  case JINJA_LIST:
    return value.as.list->flavour == FLAVOUR_GENERATOR ? drain(run, value.as.list) : value.as.list;
  case JINJA_MAP:
    return map_keys(run, value.as.map);
  case JINJA_STRING:
    return characters(run, value);
  case JINJA_UNDEFINED:
    if (jj_is_strict(run, value)) jj_fail_undefined(run, value);
    return jj_list(run->pool, FLAVOUR_LIST, 0).as.list;
  case JINJA_OBJECT:
    if (((struct object *)value.as.object)->type == OBJECT_LOOP) return rest_of_loop(run, value);
    break;
  default:
    break;
  }
  jj_fail(run, "'%s' object is not iterable", jj_type_name(value));
}

int64_t jj_length(struct run *run, struct jinja_value value) {
  switch (value.kind) {
  case JINJA_LIST:
    if (value.as.list->flavour == FLAVOUR_GENERATOR) break;
    return value.as.list->count;
  case JINJA_MAP:
    return value.as.map->count;
  case JINJA_STRING:
    return (int64_t)jj_utf8_count(value.as.string->bytes, value.as.string->length);
  case JINJA_UNDEFINED:
    if (jj_is_strict(run, value)) jj_fail_undefined(run, value);
    return 0;
  case JINJA_OBJECT:
    if (((struct object *)value.as.object)->type == OBJECT_LOOP) return ((struct loop_object *)value.as.object)->length;
    break;
  default:
    break;
  }
  jj_fail(run, "object of type '%s' has no len()", jj_type_name(value));
}
