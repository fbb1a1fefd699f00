#include "gen/ops/support/support.h"

int64_t op_rows(struct shape shape) {
  return shape_product(shape, 0, shape.rank - 1);
}

int64_t op_columns(struct shape shape) {
  return shape.rank > 0 ? shape.dim[shape.rank - 1] : 1;
}

struct shape op_leading(struct shape shape) {
  if (shape.rank > 0) shape.rank--;
  return shape;
}

struct shape op_with_extent(struct shape shape, int axis, int64_t extent) {
  shape.dim[axis] = extent;
  return shape;
}

struct op_block op_block(struct shape shape, int axis) {
  return (struct op_block){shape_product(shape, 0, axis), shape.dim[axis], shape_product(shape, axis + 1, shape.rank)};
}

bool op_is_dense(struct shape shape, const int64_t *strides) {
  int64_t dense[MAX_RANK];
  shape_dense_strides(shape, dense);
  for (int i = 0; i < shape.rank; i++)
    if (shape.dim[i] != 1 && strides[i] != dense[i]) return false;
  return true;
}

bool op_collapse(struct shape shape, const int64_t *strides, int first, int last, int64_t fallback, int64_t *stride) {
  int inner = -1; /* the dimension to the right that counts */
  *stride = fallback;
  for (int i = last - 1; i >= first; i--) {
    if (shape.dim[i] == 1) continue;
    if (inner < 0)
      *stride = strides[i];
    else if (strides[i] != strides[inner] * shape.dim[inner])
      return false;
    inner = i;
  }
  return true;
}
