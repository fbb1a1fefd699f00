/* Operations of one process alone that go through a value leaf by leaf: operations.h. */
#include "include/accel/operations.h"
#include "include/accel/process.h"

#include "runtime/values/elements.h"
#include "runtime/values/store.h"

#include <string.h>

static struct accel_value *apply_to_leaf(struct accel_store *store, accel_function *function, struct accel_value *leaf,
                                         void *context) {
  struct accel_value *result = function(store, leaf, context);
  return result != NULL ? result : rt_store_fail(store, "a function fails for %s", rt_kind_name(leaf));
}

struct accel_value *accel_recursively_apply(struct accel_store *store, accel_function *function,
                                            struct accel_value *value, void *context,
                                            bool (*test)(const struct accel_value *), bool error_on_other_type) {
  if (value == NULL) return NULL;
  if (rt_is_list(value)) {
    struct accel_value *list = rt_empty_like(store, value);
    for (int64_t i = 0; list != NULL && i < value->list.count; i++) {
      struct accel_value *item =
          accel_recursively_apply(store, function, value->list.items[i], context, test, error_on_other_type);
      if (!rt_add(store, list, value->kind == ACCEL_MAP ? value->list.names[i] : NULL, item)) return NULL;
    }
    return list;
  }
  if ((test != NULL ? test : rt_is_tensor)(value)) return apply_to_leaf(store, function, value, context);
  if (!error_on_other_type) return value;
  return rt_store_fail(store, "%s where nested lists and maps of tensors are wanted", rt_kind_name(value));
}

/* ---- Slices ---- */

struct cut {
  int64_t start, stop, step;
};

static int64_t bound(int64_t at, int64_t length) {
  if (at < 0) at = at < -length ? 0 : at + length;
  return at < length ? at : length;
}

static struct accel_value *cut_tensor(struct accel_store *store, struct accel_value *tensor, void *context) {
  const struct cut *cut = context;
  if (tensor->tensor.rank == 0) return rt_store_fail(store, "a slice of a scalar");
  int64_t length = tensor->tensor.shape[0], start = bound(cut->start, length), stop = bound(cut->stop, length);
  int64_t rows = stop > start ? (stop - start - 1) / cut->step + 1 : 0;
  struct accel_value *result = rt_tensor_like(store, tensor, rows);
  size_t row = length > 0 ? rt_tensor_bytes(tensor) / (size_t)length : 0;
  for (int64_t i = 0; result != NULL && row > 0 && i < rows; i++)
    memcpy((char *)result->tensor.data + (size_t)i * row,
           (const char *)tensor->tensor.data + (size_t)(start + i * cut->step) * row, row);
  return result;
}

struct accel_value *accel_slice_tensors(struct accel_store *store, struct accel_value *value, int64_t start,
                                        int64_t stop, int64_t step) {
  struct cut cut = {start, stop, step};
  if (step < 1) return rt_store_fail(store, "a slice with a step of %lld", (long long)step);
  return accel_recursively_apply(store, cut_tensor, value, &cut, NULL, false);
}

/* ---- Numbers ---- */

static struct accel_value *number_at(struct accel_store *store, const struct accel_value *tensor, int64_t index) {
  enum accel_dtype dtype = tensor->tensor.dtype;
  if (rt_is_floating(dtype)) return accel_make_real(store, accel_element(tensor, index));
  int64_t integer = rt_integer_at(dtype, tensor->tensor.data, index);
  return dtype == ACCEL_BOOL ? accel_make_boolean(store, integer != 0) : accel_make_integer(store, integer);
}

/* The elements from `*at` on as lists over the dimensions from `dim` on. */
static struct accel_value *list_from(struct accel_store *store, const struct accel_value *tensor, int dim,
                                     int64_t *at) {
  if (dim == tensor->tensor.rank) return number_at(store, tensor, (*at)++);
  struct accel_value *list = accel_make_list(store);
  for (int64_t i = 0; list != NULL && i < tensor->tensor.shape[dim]; i++)
    list = accel_append(store, list, list_from(store, tensor, dim + 1, at));
  return list;
}

static struct accel_value *list_of(struct accel_store *store, struct accel_value *tensor, void *context) {
  int64_t at = 0;
  (void)context;
  return list_from(store, tensor, 0, &at);
}

struct accel_value *accel_listify(struct accel_store *store, struct accel_value *value) {
  return accel_recursively_apply(store, list_of, value, NULL, NULL, false);
}

/* ---- Types ---- */

struct accel_value *accel_send_to_device(struct accel_store *store, struct accel_value *value, const char *device) {
  const char *own = accel_process()->device;
  if (strcmp(device, "cpu") == 0 || strcmp(device, own) == 0) return value;
  bool other = strcmp(own, "cpu") != 0;
  return rt_store_fail(store, "device '%.40s': this process has \"cpu\"%s%s%s", device, other ? " and \"" : "",
                       other ? own : "", other ? "\"" : "");
}

static bool is_of_16_bits(const struct accel_value *value) {
  return rt_is_tensor(value) && rt_is_floating(value->tensor.dtype) && accel_dtype_size(value->tensor.dtype) == 2;
}

static struct accel_value *widen(struct accel_store *store, struct accel_value *tensor, void *context) {
  (void)context;
  struct accel_value *result = accel_make_tensor(store, ACCEL_FLOAT32, tensor->tensor.rank, tensor->tensor.shape, NULL);
  if (result != NULL)
    rt_convert(ACCEL_FLOAT32, result->tensor.data, tensor->tensor.dtype, tensor->tensor.data, rt_tensor_count(tensor));
  return result;
}

struct accel_value *accel_convert_to_fp32(struct accel_store *store, struct accel_value *value) {
  return accel_recursively_apply(store, widen, value, NULL, is_of_16_bits, false);
}

struct accel_value *accel_convert_outputs_to_fp32(struct accel_store *store, accel_function *function,
                                                  struct accel_value *value, void *context) {
  return value != NULL ? accel_convert_to_fp32(store, function(store, value, context)) : NULL;
}

/* ---- Shapes ---- */

int64_t accel_find_batch_size(struct accel_store *store, const struct accel_value *value) {
  const struct accel_value *at = value;
  while (at != NULL && rt_is_list(at) && at->list.count > 0) at = at->list.items[0];
  if (at != NULL && rt_is_tensor(at) && at->tensor.rank > 0) return at->tensor.shape[0];
  if (at != NULL)
    rt_store_fail(store, "the batch size of %s%s", rt_kind_name(at),
                  rt_is_tensor(at) ? " without dimensions"
                  : rt_is_list(at) ? " without items"
                                   : "");
  return -1;
}

static struct accel_value *information_of(struct accel_store *store, struct accel_value *tensor, void *context) {
  struct accel_value *information = rt_value(store, ACCEL_INFORMATION);
  (void)context;
  if (information == NULL) return NULL;
  information->tensor = tensor->tensor;
  information->tensor.data = NULL;
  return information;
}

struct accel_value *accel_get_data_structure(struct accel_store *store, struct accel_value *value) {
  return accel_recursively_apply(store, information_of, value, NULL, NULL, false);
}

static bool is_information(const struct accel_value *value) {
  return value->kind == ACCEL_INFORMATION;
}

static struct accel_value *tensor_of(struct accel_store *store, struct accel_value *information, void *context) {
  (void)context;
  return accel_make_tensor(store, information->tensor.dtype, information->tensor.rank, information->tensor.shape, NULL);
}

struct accel_value *accel_initialize_tensors(struct accel_store *store, struct accel_value *structure) {
  return accel_recursively_apply(store, tensor_of, structure, NULL, is_information, false);
}

static struct accel_value *shape_of(struct accel_store *store, struct accel_value *tensor, void *context) {
  struct accel_value *list = accel_make_list(store);
  (void)context;
  for (int i = 0; i < tensor->tensor.rank; i++)
    list = accel_append(store, list, accel_make_integer(store, tensor->tensor.shape[i]));
  return list;
}

struct accel_value *accel_get_shape(struct accel_store *store, struct accel_value *value) {
  return accel_recursively_apply(store, shape_of, value, NULL, NULL, false);
}
