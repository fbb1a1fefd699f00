/* Values made and read. */
#include "include/accel/value.h"

#include "runtime/values/elements.h"
#include "runtime/values/store.h"

#include <stdlib.h>
#include <string.h>

struct accel_value *rt_value(struct accel_store *store, enum accel_kind kind) {
  struct accel_value *value = rt_store_take(store, sizeof *value);
  if (value != NULL) value->kind = kind;
  return value;
}

/* ---- Making ---- */

struct accel_value *accel_make_none(struct accel_store *store) {
  return rt_value(store, ACCEL_NONE);
}

struct accel_value *accel_make_boolean(struct accel_store *store, bool boolean) {
  struct accel_value *value = rt_value(store, ACCEL_BOOLEAN);
  if (value != NULL) value->boolean = boolean;
  return value;
}

struct accel_value *accel_make_integer(struct accel_store *store, int64_t integer) {
  struct accel_value *value = rt_value(store, ACCEL_INTEGER);
  if (value != NULL) value->integer = integer;
  return value;
}

struct accel_value *accel_make_real(struct accel_store *store, double real) {
  struct accel_value *value = rt_value(store, ACCEL_REAL);
  if (value != NULL) value->real = real;
  return value;
}

struct accel_value *accel_make_bytes(struct accel_store *store, const char *text, size_t length) {
  struct accel_value *value = rt_value(store, ACCEL_STRING);
  char *copy = value != NULL ? rt_store_take(store, length + 1) : NULL;
  if (copy == NULL) return NULL;
  if (length > 0) memcpy(copy, text, length);
  value->string.text = copy;
  value->string.length = length;
  return value;
}

struct accel_value *accel_make_string(struct accel_store *store, const char *text) {
  return accel_make_bytes(store, text, strlen(text));
}

/* The elements of a shape; -1: they are beyond the address space. */
static int64_t elements_of(int rank, const int64_t *shape, enum accel_dtype dtype) {
  int64_t count = (int64_t)accel_dtype_size(dtype);
  for (int i = 0; i < rank; i++)
    if (__builtin_mul_overflow(count, shape[i] > 0 ? shape[i] : 1, &count) || count > INT64_MAX / 2) return -1;
  count /= (int64_t)accel_dtype_size(dtype);
  for (int i = 0; i < rank; i++)
    if (shape[i] == 0) count = 0;
  return count;
}

struct accel_value *accel_make_view(struct accel_store *store, enum accel_dtype dtype, int rank, const int64_t *shape,
                                    const void *data) {
  if ((unsigned)dtype >= ACCEL_DTYPES) return rt_store_fail(store, "a tensor of dtype %d, which is none", (int)dtype);
  if (rank < 0 || rank > ACCEL_MOST_DIMENSIONS)
    return rt_store_fail(store, "a tensor of %d dimensions; it has 0 to %d", rank, ACCEL_MOST_DIMENSIONS);
  for (int i = 0; i < rank; i++)
    if (shape[i] < 0) return rt_store_fail(store, "a tensor of length %lld", (long long)shape[i]);
  if (elements_of(rank, shape, dtype) < 0) return rt_store_fail(store, "a tensor beyond the address space");
  struct accel_value *value = rt_value(store, ACCEL_TENSOR);
  if (value == NULL) return NULL;
  value->tensor.dtype = dtype;
  value->tensor.rank = rank;
  for (int i = 0; i < rank; i++) value->tensor.shape[i] = shape[i];
  value->tensor.data = (void *)(uintptr_t)data;
  return value;
}

struct accel_value *accel_make_tensor(struct accel_store *store, enum accel_dtype dtype, int rank, const int64_t *shape,
                                      const void *data) {
  struct accel_value *value = accel_make_view(store, dtype, rank, shape, NULL);
  size_t bytes = value != NULL ? rt_tensor_bytes(value) : 0;
  if (value == NULL || (value->tensor.data = rt_store_take(store, bytes > 0 ? bytes : 1)) == NULL) return NULL;
  if (data != NULL && bytes > 0) memcpy(value->tensor.data, data, bytes);
  return value;
}

struct accel_value *rt_tensor_like(struct accel_store *store, const struct accel_value *like, int64_t rows) {
  int64_t shape[ACCEL_MOST_DIMENSIONS];
  memcpy(shape, like->tensor.shape, sizeof shape);
  shape[0] = rows;
  return accel_make_tensor(store, like->tensor.dtype, like->tensor.rank, shape, NULL);
}

struct accel_value *accel_make_list(struct accel_store *store) {
  return rt_value(store, ACCEL_LIST);
}

struct accel_value *accel_make_map(struct accel_store *store) {
  return rt_value(store, ACCEL_MAP);
}

struct accel_value *rt_empty_like(struct accel_store *store, const struct accel_value *like) {
  return rt_value(store, like->kind);
}

/* A longer array is elsewhere in the store, which keeps the old one as well. */
static bool grow(struct accel_store *store, struct accel_value *list) {
  int64_t capacity = list->list.capacity > 0 ? 2 * list->list.capacity : 8;
  size_t count = (size_t)list->list.count;
  struct accel_value **items = rt_store_take(store, (size_t)capacity * sizeof *items);
  const char **names = list->kind == ACCEL_MAP ? rt_store_take(store, (size_t)capacity * sizeof *names) : NULL;
  if (items == NULL || (list->kind == ACCEL_MAP && names == NULL)) return false;
  if (count > 0) memcpy(items, list->list.items, count * sizeof *items);
  if (count > 0 && names != NULL) memcpy(names, list->list.names, count * sizeof *names);
  list->list.items = items;
  list->list.names = names;
  list->list.capacity = capacity;
  return true;
}

bool rt_add(struct accel_store *store, struct accel_value *list, const char *name, struct accel_value *item) {
  if (list == NULL || item == NULL) return false;
  if (list->list.count == list->list.capacity && !grow(store, list)) return false;
  if (list->kind == ACCEL_MAP) list->list.names[list->list.count] = name;
  list->list.items[list->list.count++] = item;
  return true;
}

struct accel_value *accel_append(struct accel_store *store, struct accel_value *list, struct accel_value *item) {
  if (list == NULL || item == NULL) return NULL;
  if (list->kind != ACCEL_LIST) return rt_store_fail(store, "an item is added to %s", rt_kind_name(list));
  return rt_add(store, list, NULL, item) ? list : NULL;
}

static struct accel_value **entry_of(const struct accel_value *map, const char *name) {
  for (int64_t i = 0; i < map->list.count; i++)
    if (strcmp(map->list.names[i], name) == 0) return &map->list.items[i];
  return NULL;
}

struct accel_value *accel_set(struct accel_store *store, struct accel_value *map, const char *name,
                              struct accel_value *item) {
  if (map == NULL || item == NULL) return NULL;
  if (map->kind != ACCEL_MAP) return rt_store_fail(store, "'%.100s' is set in %s", name, rt_kind_name(map));
  struct accel_value **entry = entry_of(map, name);
  if (entry != NULL) {
    *entry = item;
    return map;
  }
  char *copy = rt_store_take(store, strlen(name) + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, name, strlen(name));
  return rt_add(store, map, copy, item) ? map : NULL;
}

/* ---- Reading ---- */

bool rt_is_list(const struct accel_value *value) {
  return value->kind == ACCEL_LIST || value->kind == ACCEL_MAP;
}

bool rt_is_tensor(const struct accel_value *value) {
  return value->kind == ACCEL_TENSOR;
}

const char *rt_kind_name(const struct accel_value *value) {
  static const char *const names[] = {
      "none",   "a boolean", "an integer", "a real number", "a string", "a tensor", "a tensor's information",
      "a list", "a map"};
  return names[value->kind];
}

struct accel_value *accel_at(const struct accel_value *list, int64_t index) {
  if (list == NULL || !rt_is_list(list)) return NULL;
  if (index < 0) index += list->list.count;
  return index >= 0 && index < list->list.count ? list->list.items[index] : NULL;
}

struct accel_value *accel_get(const struct accel_value *map, const char *name) {
  struct accel_value **entry = map != NULL && map->kind == ACCEL_MAP ? entry_of(map, name) : NULL;
  return entry != NULL ? *entry : NULL;
}

int64_t rt_tensor_count(const struct accel_value *tensor) {
  return elements_of(tensor->tensor.rank, tensor->tensor.shape, tensor->tensor.dtype);
}

size_t rt_tensor_bytes(const struct accel_value *tensor) {
  return (size_t)rt_tensor_count(tensor) * accel_dtype_size(tensor->tensor.dtype);
}

int64_t accel_count(const struct accel_value *value) {
  if (value == NULL) return 0;
  if (rt_is_list(value)) return value->list.count;
  if (value->kind == ACCEL_STRING) return (int64_t)value->string.length;
  return value->kind == ACCEL_TENSOR || value->kind == ACCEL_INFORMATION ? rt_tensor_count(value) : 1;
}

double accel_element(const struct accel_value *tensor, int64_t index) {
  return rt_real_at(tensor->tensor.dtype, tensor->tensor.data, index);
}

static bool equal_tensors(const struct accel_value *a, const struct accel_value *b) {
  if (a->tensor.dtype != b->tensor.dtype || a->tensor.rank != b->tensor.rank) return false;
  for (int i = 0; i < a->tensor.rank; i++)
    if (a->tensor.shape[i] != b->tensor.shape[i]) return false;
  size_t bytes = a->kind == ACCEL_TENSOR ? rt_tensor_bytes(a) : 0;
  return bytes == 0 || memcmp(a->tensor.data, b->tensor.data, bytes) == 0;
}

static bool equal_lists(const struct accel_value *a, const struct accel_value *b) {
  if (a->list.count != b->list.count) return false;
  for (int64_t i = 0; i < a->list.count; i++) {
    if (a->kind == ACCEL_MAP && strcmp(a->list.names[i], b->list.names[i]) != 0) return false;
    if (!accel_equal(a->list.items[i], b->list.items[i])) return false;
  }
  return true;
}

bool accel_equal(const struct accel_value *a, const struct accel_value *b) {
  if (a == NULL || b == NULL || a->kind != b->kind) return false;
  switch (a->kind) {
  case ACCEL_NONE:
    return true;
  case ACCEL_BOOLEAN:
    return a->boolean == b->boolean;
  case ACCEL_INTEGER:
    return a->integer == b->integer;
  case ACCEL_REAL:
    return memcmp(&a->real, &b->real, sizeof a->real) == 0;
  case ACCEL_STRING:
    return a->string.length == b->string.length && memcmp(a->string.text, b->string.text, a->string.length) == 0;
  case ACCEL_TENSOR:
  case ACCEL_INFORMATION:
    return equal_tensors(a, b);
  default:
    return equal_lists(a, b);
  }
}
