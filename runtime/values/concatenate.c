/* Tensors one after the other: accel_concatenate of operations.h. */
#include "include/accel/operations.h"

#include "runtime/values/elements.h"
#include "runtime/values/store.h"

#include <string.h>

/* As PyTorch has it for the sake of old programs: such a tensor goes with any other. */
static bool counts_for_nothing(const struct accel_value *tensor) {
  return tensor->tensor.rank == 1 && tensor->tensor.shape[0] == 0;
}

/* Whether tensors go after each other along `dim`: of one shape but for that. */
static bool fits(const struct accel_value *a, const struct accel_value *b, int dim) {
  if (a->tensor.rank != b->tensor.rank) return false;
  for (int i = 0; i < a->tensor.rank; i++)
    if (i != dim && a->tensor.shape[i] != b->tensor.shape[i]) return false;
  return true;
}

/* The shape and type of all together, where they fit. */
static struct accel_value *whole_of(struct accel_store *store, const struct accel_value *list, int *dim) {
  const struct accel_value *first = NULL;
  int64_t shape[ACCEL_MOST_DIMENSIONS] = {0}, length = 0;
  enum accel_dtype dtype = list->list.items[0]->tensor.dtype;
  for (int64_t i = 0; i < list->list.count; i++) {
    const struct accel_value *item = list->list.items[i];
    if (!rt_is_tensor(item)) return rt_store_fail(store, "a tensor is concatenated with %s", rt_kind_name(item));
    if (item->tensor.rank == 0) return rt_store_fail(store, "scalars cannot be concatenated");
    dtype = rt_promote(dtype, item->tensor.dtype);
    if (first == NULL && !counts_for_nothing(item)) first = item;
  }
  if (first == NULL) return *dim = 0, accel_make_tensor(store, dtype, 1, shape, NULL);
  int rank = first->tensor.rank, along = *dim < 0 ? *dim + rank : *dim;
  if (along < 0 || along >= rank) return rt_store_fail(store, "dimension %d of a tensor of %d", *dim, rank);
  for (int64_t i = 0; i < list->list.count; i++) {
    const struct accel_value *item = list->list.items[i];
    if (counts_for_nothing(item)) continue;
    if (!fits(first, item, along))
      return rt_store_fail(store, "%s and %s do not fit each other along dimension %d",
                           accel_show(store, accel_get_data_structure(store, (struct accel_value *)(uintptr_t)first)),
                           accel_show(store, accel_get_data_structure(store, list->list.items[i])), *dim);
    length += item->tensor.shape[along];
  }
  memcpy(shape, first->tensor.shape, sizeof shape);
  shape[along] = length;
  *dim = along;
  return accel_make_tensor(store, dtype, rank, shape, NULL);
}

static struct accel_value *concatenate_tensors(struct accel_store *store, const struct accel_value *list, int dim) {
  struct accel_value *whole = whole_of(store, list, &dim);
  if (whole == NULL) return NULL;
  int64_t outer = 1, inner = 1, at = 0;
  size_t size = accel_dtype_size(whole->tensor.dtype);
  for (int i = 0; i < dim; i++) outer *= whole->tensor.shape[i];
  for (int i = dim + 1; i < whole->tensor.rank; i++) inner *= whole->tensor.shape[i];
  int64_t line = whole->tensor.shape[dim] * inner;
  for (int64_t i = 0; i < list->list.count; i++) {
    const struct accel_value *item = list->list.items[i];
    if (counts_for_nothing(item)) continue;
    int64_t part = item->tensor.shape[dim] * inner;
    size_t width = accel_dtype_size(item->tensor.dtype);
    for (int64_t o = 0; part > 0 && o < outer; o++)
      rt_convert(whole->tensor.dtype, (char *)whole->tensor.data + (size_t)(o * line + at) * size, item->tensor.dtype,
                 (const char *)item->tensor.data + (size_t)(o * part) * width, part);
    at += part;
  }
  return whole;
}

/* The items at one position of all: a list of them. */
static struct accel_value *column(struct accel_store *store, const struct accel_value *list, int64_t index) {
  const struct accel_value *first = list->list.items[0];
  const char *name = first->kind == ACCEL_MAP ? first->list.names[index] : NULL;
  struct accel_value *items = accel_make_list(store);
  for (int64_t i = 0; items != NULL && i < list->list.count; i++) {
    const struct accel_value *each = list->list.items[i];
    if (each->kind != first->kind)
      return rt_store_fail(store, "%s is concatenated with %s", rt_kind_name(first), rt_kind_name(each));
    struct accel_value *item = name != NULL ? accel_get(each, name) : accel_at(each, index);
    if (item == NULL && name != NULL) return rt_store_fail(store, "'%.100s' is missing in value %d", name, (int)i);
    if (item == NULL) return rt_store_fail(store, "item %d is missing in value %d", (int)index, (int)i);
    items = accel_append(store, items, item);
  }
  return items;
}

struct accel_value *accel_concatenate(struct accel_store *store, const struct accel_value *list, int dim) {
  if (list == NULL) return NULL;
  if (list->kind != ACCEL_LIST || list->list.count == 0)
    return rt_store_fail(store, "what is concatenated is not a list of values, but %s",
                         list->kind == ACCEL_LIST ? "an empty one" : rt_kind_name(list));
  struct accel_value *first = list->list.items[0];
  if (rt_is_tensor(first)) return concatenate_tensors(store, list, dim);
  if (!rt_is_list(first))
    return list->list.count == 1 ? first : rt_store_fail(store, "%s is concatenated", rt_kind_name(first));
  struct accel_value *result = rt_empty_like(store, first);
  for (int64_t i = 0; result != NULL && i < first->list.count; i++) {
    struct accel_value *items = column(store, list, i), *item = accel_concatenate(store, items, dim);
    if (!rt_add(store, result, first->kind == ACCEL_MAP ? first->list.names[i] : NULL, item)) return NULL;
  }
  return result;
}
