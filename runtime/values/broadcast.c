/* What one rank has, on all of them: accel_broadcast and its like, of operations.h. */
#include "include/accel/operations.h"

#include "runtime/process/world.h"
#include "runtime/values/agreement.h"
#include "runtime/values/store.h"

#include <stdio.h>
#include <string.h>

static bool is_rank(struct accel_store *store, int rank) {
  if (rank >= 0 && rank < rt_world()->ranks) return true;
  rt_store_fail(store, "rank %d, of %d ranks", rank, rt_world()->ranks);
  return false;
}

static struct accel_value *share_tensor(struct accel_store *store, struct accel_value *tensor, void *context) {
  const int *from = context;
  struct accel_value *copy =
      accel_make_tensor(store, tensor->tensor.dtype, tensor->tensor.rank, tensor->tensor.shape, tensor->tensor.data);
  if (copy != NULL) rt_user_broadcast(copy->tensor.data, rt_tensor_bytes(copy), *from, "accel_broadcast");
  return copy;
}

struct accel_value *accel_broadcast(struct accel_store *store, struct accel_value *value, int from_process) {
  char from[40];
  snprintf(from, sizeof from, "of rank %d: ", from_process);
  if (rt_world()->ranks == 1) return value;
  bool good = is_rank(store, from_process);
  if (!rt_agree(store, OPERATION_BROADCAST, good ? rt_build_of(store, value, from, true) : NULL)) return NULL;
  return accel_recursively_apply(store, share_tensor, value, &from_process, NULL, true);
}

struct accel_value *accel_broadcast_object_list(struct accel_store *store, struct accel_value *list, int from_process) {
  const char *name = rt_operation_name(OPERATION_BROADCAST_OBJECT_LIST);
  char of[80];
  size_t length = 0;
  void *own = NULL;
  if (rt_world()->ranks == 1) return list;
  bool good = list != NULL && is_rank(store, from_process);
  if (good && list->kind != ACCEL_LIST)
    good = rt_store_fail(store, "%s, where a list of objects is wanted", rt_kind_name(list)) != NULL;
  if (good && rt_world()->rank == from_process) good = (own = accel_to_bytes(store, list, &length)) != NULL;
  if (good) snprintf(of, sizeof of, "rank %d's list of %lld items", from_process, (long long)list->list.count);
  if (!rt_agree(store, OPERATION_BROADCAST_OBJECT_LIST, good ? of : NULL)) return NULL;
  uint64_t size = length;
  rt_user_broadcast(&size, sizeof size, from_process, name);
  void *bytes = own != NULL ? own : rt_store_take(store, (size_t)size);
  if (bytes == NULL) return NULL;
  rt_user_broadcast(bytes, (size_t)size, from_process, name);
  return accel_from_bytes(store, bytes, (size_t)size);
}
