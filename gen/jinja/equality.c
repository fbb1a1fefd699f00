/* Truth, equality, order and hashes of values, with Python's meaning. */
#include <math.h>
#include <string.h>

#include "gen/jinja/value.h"

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
 * "not equal", and a tuple of that kind has no hash (Python's ends in a RecursionError, or not at all). */
struct bounds {
  int depth;
  int64_t left;
  struct jinja_value *refused; /* where an undefined value that raises is left; NULL: none raises */
};
enum { MAX_COMPARE_DEPTH = 500, MAX_COMPARED = 10000000 };

static bool equal_within(struct jinja_value a, struct jinja_value b, struct bounds *bounds);

static bool is_tuple(const struct jinja_list *list) {
  return list->flavour == FLAVOUR_TUPLE || list->flavour == FLAVOUR_GROUP;
}

/* Of as many items: equal where the items are. */
static bool equal_ranges(const struct jinja_list *a, const struct jinja_list *b) {
  if (a->count == 0) return true;
  return a->start == b->start && (a->count == 1 || a->step == b->step);
}

static bool equal_lists(const struct jinja_list *a, const struct jinja_list *b, struct bounds *bounds) {
  if (a == b) return true;
  if (is_tuple(a) != is_tuple(b) || (!is_tuple(a) && a->flavour != b->flavour)) return false;
  if (a->flavour == FLAVOUR_GENERATOR || a->flavour == FLAVOUR_VALUES || a->count != b->count) return false;
  if (a->flavour == FLAVOUR_RANGE) return equal_ranges(a, b);
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

/* Whether the comparison raises at v. */
static bool refuses(const struct bounds *bounds, struct jinja_value v) {
  if (bounds->refused == NULL || v.kind != JINJA_UNDEFINED || is_standard(v)) return false;
  *bounds->refused = v;
  return true;
}

static bool equal_within(struct jinja_value a, struct jinja_value b, struct bounds *bounds) {
  if (refuses(bounds, a) || refuses(bounds, b)) return false;
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
  struct bounds bounds = {0, MAX_COMPARED, NULL};
  return equal_within(a, b, &bounds);
}

bool jj_equal_strictly(struct jinja_value a, struct jinja_value b, struct jinja_value *refused) {
  struct bounds bounds = {0, MAX_COMPARED, refused};
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
  struct bounds bounds = {0, MAX_COMPARED, NULL};
  *comparable = true;
  return order_within(a, b, comparable, &bounds);
}

static bool hashable_within(struct jinja_value v, struct bounds *bounds) {
  if (v.kind == JINJA_MAP) return false;
  if (v.kind != JINJA_LIST) return true;
  if (v.as.list->flavour == FLAVOUR_LIST || v.as.list->flavour == FLAVOUR_ITEMS) return false;
  if (v.as.list->flavour == FLAVOUR_RANGE) return true;
  if (bounds->depth == MAX_COMPARE_DEPTH) return false;
  bounds->depth++;
  for (int i = 0; i < v.as.list->count; i++) {
    if (bounds->left-- <= 0 || !hashable_within(v.as.list->items[i], bounds)) return false;
  }
  bounds->depth--;
  return true;
}

bool jj_hashable(struct jinja_value v) {
  struct bounds bounds = {0, MAX_COMPARED, NULL};
  return hashable_within(v, &bounds);
}

static uint32_t hash_int(int64_t value) {
  uint64_t mixed = (uint64_t)value * 0x9E3779B97F4A7C15u;
  return (uint32_t)(mixed >> 32) | 1u;
}

static uint32_t hash_range(const struct jinja_list *range) {
  uint32_t hash = hash_int(range->count);
  if (range->count > 0) hash = hash * 1000003u ^ hash_int(range->start);
  return range->count > 1 ? hash * 1000003u ^ hash_int(range->step) : hash;
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
    if (v.as.list->flavour == FLAVOUR_RANGE) return hash_range(v.as.list);
    for (int i = 0; i < v.as.list->count; i++) hash = hash * 1000003u ^ jj_hash(v.as.list->items[i]);
    return hash;
  }
  case JINJA_OBJECT:
    return hash_int((int64_t)(intptr_t)v.as.object);
  default:
    return 7;
  }
}
