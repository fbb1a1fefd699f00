/* Elements of all ranks as one: accel_reduce of operations.h. */
#include "include/accel/operations.h"

#include "runtime/process/world.h"
#include "runtime/values/agreement.h"
#include "runtime/values/elements.h"
#include "runtime/values/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Elements of a rank that are in hand at a time. */
enum { CHUNK = 1 << 14 };

struct reduction {
  enum accel_reduction kind;
  double factor; /* of a sum */
};

static double sum_of_reals(const void *gathered, enum accel_dtype dtype, int64_t at, int64_t count) {
  double sum = 0;
  for (int rank = 0; rank < rt_world()->ranks; rank++) sum += rt_real_at(dtype, gathered, rank * count + at);
  return sum;
}

/* One that is not a number is the largest. */
static double largest_real(const void *gathered, enum accel_dtype dtype, int64_t at, int64_t count) {
  double largest = rt_real_at(dtype, gathered, at);
  for (int rank = 1; rank < rt_world()->ranks && !isnan(largest); rank++) {
    double value = rt_real_at(dtype, gathered, rank * count + at);
    if (isnan(value) || value > largest) largest = value;
  }
  return largest;
}

static int64_t reduce_integers(const void *gathered, enum accel_dtype dtype, int64_t at, int64_t count, bool largest) {
  int64_t result = rt_integer_at(dtype, gathered, at);
  for (int rank = 1; rank < rt_world()->ranks; rank++) {
    int64_t value = rt_integer_at(dtype, gathered, rank * count + at);
    if (!largest)
      result = (int64_t)((uint64_t)result + (uint64_t)value);
    else if (value > result)
      result = value;
  }
  return result;
}

static void reduce_chunk(const struct reduction *how, enum accel_dtype dtype, const void *gathered, void *out,
                         int64_t count) {
  bool largest = how->kind == ACCEL_MAX;
  for (int64_t i = 0; i < count; i++)
    if (!rt_is_floating(dtype))
      rt_set_integer(dtype, out, i, reduce_integers(gathered, dtype, i, count, largest));
    else
      rt_set_real(dtype, out, i, (largest ? largest_real : sum_of_reals)(gathered, dtype, i, count) * how->factor);
}

static struct accel_value *reduce_tensor(struct accel_store *store, struct accel_value *tensor, void *context) {
  const struct reduction *how = context;
  enum accel_dtype dtype = tensor->tensor.dtype;
  size_t width = accel_dtype_size(dtype);
  struct accel_value *result = accel_make_tensor(store, dtype, tensor->tensor.rank, tensor->tensor.shape, NULL);
  int64_t all = rt_tensor_count(tensor), most = all < CHUNK ? all : CHUNK;
  void *gathered = rt_store_take(store, (size_t)rt_world()->ranks * (size_t)most * width);
  if (gathered == NULL) return NULL;
  for (int64_t at = 0; result != NULL && at < all; at += CHUNK) {
    int64_t count = all - at < CHUNK ? all - at : CHUNK;
    const char *own = (const char *)tensor->tensor.data + (size_t)at * width;
    rt_user_gather(own, gathered, (size_t)count * width, "accel_reduce");
    reduce_chunk(how, dtype, gathered, (char *)result->tensor.data + (size_t)at * width, count);
  }
  return result;
}

/* What integers do not have is refused before ranks meet. */
static struct accel_value *check_type(struct accel_store *store, struct accel_value *tensor, void *context) {
  const struct reduction *how = context;
  if (rt_is_floating(tensor->tensor.dtype) || (how->kind != ACCEL_MEAN && how->factor == 1)) return tensor;
  return rt_store_fail(store, "%s of %s tensors, which are no real numbers",
                       how->kind == ACCEL_MEAN ? "a mean" : "a scale", accel_dtype_name(tensor->tensor.dtype));
}

struct accel_value *accel_reduce(struct accel_store *store, struct accel_value *value, enum accel_reduction reduction,
                                 double scale) {
  static const char *const names[] = {"sum", "mean", "max", "sum"};
  int ranks = rt_world()->ranks;
  struct reduction how = {reduction, reduction == ACCEL_MEAN ? scale / ranks : scale};
  char of[64];
  snprintf(of, sizeof of, "%s times %.17g of ", names[reduction], scale);
  struct accel_value *good = accel_recursively_apply(store, check_type, value, &how, NULL, true);
  if (!rt_agree(store, OPERATION_REDUCE, rt_build_of(store, good, of, true))) return NULL;
  return accel_recursively_apply(store, reduce_tensor, value, &how, NULL, true);
}
