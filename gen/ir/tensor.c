#include "gen/ir/tensor.h"

#include <stdarg.h>

#include "gen/base/text.h"

const char *dtype_name(enum dtype dtype) {
  static const char *const names[] = {"float32", "int32", "bfloat16", "float16", "uint8", "int64", "float64", "int8"};
  return names[dtype];
}

const char *dtype_short_name(enum dtype dtype) {
  static const char *const names[] = {"f32", "i32", "bf16", "f16", "u8", "i64", "f64", "i8"};
  return names[dtype];
}

bool dtype_is_float(enum dtype dtype) {
  return dtype == DTYPE_FLOAT32 || dtype_is_bits16(dtype);
}

bool dtype_is_bits16(enum dtype dtype) {
  return dtype == DTYPE_BFLOAT16 || dtype == DTYPE_FLOAT16;
}

enum dtype dtype_widest(enum dtype a, enum dtype b) {
  return a == b ? a : DTYPE_FLOAT32;
}

int64_t dtype_size(enum dtype dtype) {
  static const int64_t sizes[] = {[DTYPE_FLOAT32] = 4, [DTYPE_INT32] = 4, [DTYPE_BFLOAT16] = 2, [DTYPE_FLOAT16] = 2,
                                  [DTYPE_UINT8] = 1,   [DTYPE_INT64] = 8, [DTYPE_FLOAT64] = 8,  [DTYPE_INT8] = 1};
  return sizes[dtype];
}

struct shape shape_of(int rank, ...) {
  struct shape shape = {.rank = rank};
  va_list args;
  va_start(args, rank);
  for (int i = 0; i < rank; i++) shape.dim[i] = va_arg(args, int64_t);
  va_end(args);
  return shape;
}

int64_t shape_product(struct shape shape, int first, int last) {
  int64_t product = 1;
  for (int i = first; i < last; i++)
    if (__builtin_mul_overflow(product, shape.dim[i], &product)) return INT64_MAX;
  return product;
}

int64_t shape_count(struct shape shape) {
  return shape_product(shape, 0, shape.rank);
}

bool shape_equal(struct shape a, struct shape b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; i++)
    if (a.dim[i] != b.dim[i]) return false;
  return true;
}

int shape_axis(struct shape shape, int64_t axis) {
  if (axis < 0) axis += shape.rank;
  return axis >= 0 && axis < shape.rank ? (int)axis : -1;
}

bool shape_broadcast(struct shape a, struct shape b, struct shape *result) {
  int rank = a.rank > b.rank ? a.rank : b.rank;
  result->rank = rank;
  for (int i = 1; i <= rank; i++) {
    int64_t p = i <= a.rank ? a.dim[a.rank - i] : 1, q = i <= b.rank ? b.dim[b.rank - i] : 1;
    if (p != q && p != 1 && q != 1) return false;
    result->dim[rank - i] = p == 1 ? q : p;
  }
  return true;
}

const char *shape_text(struct arena *arena, struct shape shape) {
  struct text text = text_in(arena);
  for (int i = 0; i < shape.rank; i++) text_printf(&text, "[%lld]", (long long)shape.dim[i]);
  return shape.rank > 0 ? text_string(&text) : "[]";
}

void shape_dense_strides(struct shape shape, int64_t strides[MAX_RANK]) {
  int64_t stride = 1;
  for (int i = shape.rank - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= shape.dim[i];
  }
}
