/* What all ranks have, on all of them: accel_gather and its like, of operations.h. */
#include "include/accel/operations.h"

#include "runtime/process/world.h"
#include "runtime/values/agreement.h"
#include "runtime/values/store.h"

#include <string.h>

static struct accel_value *gather_tensor(struct accel_store *store, struct accel_value *tensor, void *context) {
  struct accel_value one = *tensor;
  (void)context;
  if (one.tensor.rank == 0) {
    one.tensor.rank = 1;
    one.tensor.shape[0] = 1;
  }
  struct accel_value *all = rt_tensor_like(store, &one, rt_world()->ranks * one.tensor.shape[0]);
  size_t bytes = rt_tensor_bytes(&one);
  if (all != NULL && bytes > 0) rt_user_gather(one.tensor.data, all->tensor.data, bytes, "accel_gather");
  return all;
}

struct accel_value *accel_gather(struct accel_store *store, struct accel_value *value) {
  if (rt_world()->ranks == 1) return value;
  if (!rt_agree(store, OPERATION_GATHER, rt_build_of(store, value, "", true))) return NULL;
  return accel_recursively_apply(store, gather_tensor, value, NULL, NULL, true);
}

/* The items of rank `from`'s list after those of `all`. */
static bool add_items(struct accel_store *store, struct accel_value *all, const void *own, const uint64_t *sizes,
                      int from) {
  const char *name = rt_operation_name(OPERATION_GATHER_OBJECT);
  size_t size = (size_t)sizes[from];
  void *bytes = rt_store_take(store, size);
  if (bytes == NULL) return false;
  if (from == rt_world()->rank) memcpy(bytes, own, size);
  rt_user_broadcast(bytes, size, from, name);
  struct accel_value *list = accel_from_bytes(store, bytes, size);
  for (int64_t i = 0; list != NULL && i < list->list.count; i++)
    if (!rt_add(store, all, NULL, list->list.items[i])) return false;
  return list != NULL;
}

struct accel_value *accel_gather_object(struct accel_store *store, struct accel_value *list) {
  int ranks = rt_world()->ranks;
  uint64_t *sizes = rt_store_take(store, (size_t)ranks * sizeof *sizes);
  size_t size = 0;
  if (ranks == 1) return list;
  if (list != NULL && list->kind != ACCEL_LIST)
    list = rt_store_fail(store, "%s, where a list of objects is wanted", rt_kind_name(list));
  void *own = accel_to_bytes(store, list, &size);
  if (!rt_agree(store, OPERATION_GATHER_OBJECT, own != NULL && sizes != NULL ? "" : NULL)) return NULL;
  uint64_t mine = size;
  rt_user_gather(&mine, sizes, sizeof mine, "accel_gather_object");
  struct accel_value *all = accel_make_list(store);
  bool good = all != NULL;
  for (int i = 0; i < ranks; i++) good = add_items(store, all, own, sizes, i) && good;
  return good ? all : NULL;
}

static bool has_tensors_alone(const struct accel_value *value) {
  bool good = rt_is_list(value) || rt_is_tensor(value);
  for (int64_t i = 0; good && rt_is_list(value) && i < value->list.count; i++)
    good = has_tensors_alone(value->list.items[i]);
  return good;
}

struct accel_value *accel_gather_for_metrics(struct accel_store *store, struct accel_value *value, int64_t remainder,
                                             bool use_gather_object) {
  bool objects = use_gather_object || (value != NULL && !has_tensors_alone(value));
  struct accel_value *all = objects ? accel_gather_object(store, value) : accel_gather(store, value);
  if (all == NULL || remainder <= 0) return all;
  if (!objects) return accel_slice_tensors(store, all, 0, remainder, 1);
  if (all->kind != ACCEL_LIST) return rt_store_fail(store, "%s, where a list of objects is wanted", rt_kind_name(all));
  struct accel_value *first = accel_make_list(store);
  for (int64_t i = 0; i < remainder && i < all->list.count; i++) first = accel_append(store, first, all->list.items[i]);
  return first;
}
