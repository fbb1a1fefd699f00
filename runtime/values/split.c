/* A part for each rank: accel_split_between_processes of operations.h. */
#include "include/accel/operations.h"

#include "runtime/process/world.h"
#include "runtime/values/store.h"

#include <string.h>

/* The items of rank `rank` when `length` are shared out. */
struct part {
  int64_t start, end;
};

static struct part part_of(int64_t length, int rank) {
  int64_t each = length / rt_world()->ranks, more = length % rt_world()->ranks;
  int64_t start = rank * each + (rank < more ? rank : more);
  return (struct part){start, start + each + (rank < more)};
}

static struct part clipped(struct part part, int64_t length) {
  return (struct part){part.start < length ? part.start : length, part.end < length ? part.end : length};
}

/* What Python's len is of; -1 with a message: it has none. */
static int64_t length_of(struct accel_store *store, const struct accel_value *value) {
  if (rt_is_list(value) || value->kind == ACCEL_STRING) return accel_count(value);
  if (rt_is_tensor(value) && value->tensor.rank > 0) return value->tensor.shape[0];
  rt_store_fail(store, "%s%s cannot be split between processes", rt_kind_name(value),
                rt_is_tensor(value) ? " without dimensions" : "");
  return -1;
}

/* The length that decides: of a map that of its items, which is one. */
static int64_t common_length(struct accel_store *store, const struct accel_value *value) {
  if (value->kind != ACCEL_MAP) return length_of(store, value);
  if (value->list.count == 0) rt_store_fail(store, "an empty map cannot be split between processes");
  int64_t length = value->list.count > 0 ? length_of(store, value->list.items[0]) : -1;
  for (int64_t i = 1; length >= 0 && i < value->list.count; i++) {
    int64_t other = length_of(store, value->list.items[i]);
    if (other >= 0 && other != length)
      rt_store_fail(store, "'%.100s' has %lld items and '%.100s' %lld, so they cannot be split together",
                    value->list.names[0], (long long)length, value->list.names[i], (long long)other);
    if (other != length) return -1;
  }
  return length;
}

struct split {
  int64_t length; /* that decides */
  struct part own;
  bool padded;
};

static struct accel_value *split_list(struct accel_store *store, const struct accel_value *list,
                                      const struct split *split) {
  struct part own = clipped(split->own, list->list.count), first = part_of(split->length, 0);
  struct accel_value *result = accel_make_list(store);
  if (split->padded && list->list.count == 0) return rt_store_fail(store, "an empty list has no last item to repeat");
  for (int64_t i = own.start; i < own.end; i++) result = accel_append(store, result, list->list.items[i]);
  for (int64_t i = own.end - own.start; split->padded && i < first.end; i++)
    result = accel_append(store, result, accel_at(list, -1));
  return result;
}

static struct accel_value *split_tensor(struct accel_store *store, struct accel_value *tensor,
                                        const struct split *split) {
  if (tensor->tensor.rank == 0) return rt_store_fail(store, "a tensor without dimensions cannot be split");
  int64_t length = tensor->tensor.shape[0], rows = 0;
  struct part own = clipped(split->own, length);
  if (!split->padded) return accel_slice_tensors(store, tensor, own.start, own.end, 1);
  if (length == 0) return rt_store_fail(store, "an empty tensor has no last row to repeat");
  for (int rank = 0; rank < rt_world()->ranks; rank++) {
    struct part each = clipped(part_of(split->length, rank), length);
    if (each.end - each.start > rows) rows = each.end - each.start;
  }
  struct accel_value *result = rt_tensor_like(store, tensor, rows);
  size_t row = rt_tensor_bytes(tensor) / (size_t)length;
  for (int64_t i = 0; result != NULL && row > 0 && i < rows; i++) {
    int64_t from = own.start + i < own.end ? own.start + i : length - 1;
    memcpy((char *)result->tensor.data + (size_t)i * row, (const char *)tensor->tensor.data + (size_t)from * row, row);
  }
  return result;
}

static struct accel_value *split_value(struct accel_store *store, struct accel_value *value,
                                       const struct split *split) {
  if (value->kind == ACCEL_LIST) return split_list(store, value, split);
  if (rt_is_tensor(value)) return split_tensor(store, value, split);
  if (value->kind != ACCEL_MAP) return value;
  struct accel_value *map = accel_make_map(store);
  for (int64_t i = 0; map != NULL && i < value->list.count; i++)
    if (!rt_add(store, map, value->list.names[i], split_value(store, value->list.items[i], split))) return NULL;
  return map;
}

struct accel_value *accel_split_between_processes(struct accel_store *store, struct accel_value *value,
                                                  bool apply_padding) {
  if (value == NULL || rt_world()->ranks == 1) return value;
  int64_t length = common_length(store, value);
  if (length < 0) return NULL;
  struct split split = {length, part_of(length, rt_world()->rank), apply_padding};
  return split_value(store, value, &split);
}
