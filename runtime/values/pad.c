/* Tensors of all ranks as long as each other: accel_pad_across_processes of operations.h. */
#include "include/accel/operations.h"

#include "runtime/process/world.h"
#include "runtime/values/agreement.h"
#include "runtime/values/elements.h"
#include "runtime/values/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct padding {
  int dim;
  double index;
  bool first;
  int64_t *lengths; /* space for those of all ranks */
};

static int64_t longest(const struct padding *how, int64_t own) {
  rt_user_gather(&own, how->lengths, sizeof own, "accel_pad_across_processes");
  for (int i = 0; i < rt_world()->ranks; i++)
    if (how->lengths[i] > own) own = how->lengths[i];
  return own;
}

static void fill(struct accel_value *tensor, double value) {
  int64_t count = rt_tensor_count(tensor);
  for (int64_t i = 0; value != 0 && i < count; i++) rt_set_real(tensor->tensor.dtype, tensor->tensor.data, i, value);
}

static struct accel_value *pad_tensor(struct accel_store *store, struct accel_value *tensor, void *context) {
  const struct padding *how = context;
  int rank = tensor->tensor.rank, dim = how->dim < 0 ? how->dim + rank : how->dim;
  int64_t shape[ACCEL_MOST_DIMENSIONS], outer = 1;
  if (dim < 0 || dim >= rank) return tensor;
  memcpy(shape, tensor->tensor.shape, sizeof shape);
  int64_t own = shape[dim], length = longest(how, own);
  if (length == own) return tensor;
  shape[dim] = length;
  struct accel_value *result = accel_make_tensor(store, tensor->tensor.dtype, rank, shape, NULL);
  if (result == NULL) return NULL;
  fill(result, how->index);
  for (int i = 0; i < dim; i++) outer *= shape[i];
  size_t line = outer > 0 ? rt_tensor_bytes(result) / (size_t)outer : 0, part = line / (size_t)length * (size_t)own;
  for (int64_t i = 0; part > 0 && i < outer; i++)
    memcpy((char *)result->tensor.data + (size_t)i * line + (how->first ? line - part : 0),
           (const char *)tensor->tensor.data + (size_t)i * part, part);
  return result;
}

struct accel_value *accel_pad_across_processes(struct accel_store *store, struct accel_value *value, int dim,
                                               double pad_index, bool pad_first) {
  struct padding how = {dim, pad_index, pad_first, NULL};
  char of[120];
  snprintf(of, sizeof of, "dimension %d, %.17g at the %s, of ", dim, pad_index, pad_first ? "beginning" : "end");
  how.lengths = rt_store_take(store, (size_t)rt_world()->ranks * sizeof *how.lengths);
  const char *build = how.lengths != NULL ? rt_build_of(store, value, of, false) : NULL;
  if (!rt_agree(store, OPERATION_PAD, build)) return NULL;
  return accel_recursively_apply(store, pad_tensor, value, &how, NULL, true);
}
