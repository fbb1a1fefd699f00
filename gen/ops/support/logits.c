#include "gen/ops/support/logits.h"

int64_t op_logits_classes(const struct value *weight) {
  return weight->shape.dim[1];
}

int op_logits_check(struct arena *arena, const struct node *node, int x, int weight, int targets, const char **error) {
  if (!op_check_float(arena, node, x, error) || !op_check_dtype(arena, node, weight, node->inputs[x]->dtype, error))
    return 0;
  if (!op_check_rank(arena, node, x, 1, error) || !op_check_dtype(arena, node, targets, DTYPE_INT32, error)) return 0;
  struct shape shape = node->inputs[x]->shape;
  struct shape wanted = shape_of(2, op_columns(shape), op_columns(node->inputs[weight]->shape));
  if (!op_check_shape(arena, node, weight, wanted, "a row for each column of x", error)) return 0;
  return op_check_shape(arena, node, targets, op_leading(shape), "one for each row of x", error);
}

struct shape op_logits_chunk(const struct node *node) {
  return shape_of(2, node_int(node, "rows"), node_int(node, "pitch"));
}

int op_logits_infer_gradients(const struct node *node, int x, int weight, struct shape *shapes, enum dtype *dtypes) {
  shapes[0] = node->inputs[x]->shape;
  shapes[1] = node->inputs[weight]->shape;
  shapes[2] = op_logits_chunk(node);
  for (int i = 0; i < 3; i++) dtypes[i] = node->inputs[x]->dtype;
  return 3;
}

bool op_logits_is_matrix(struct shape shape, const int64_t *strides) {
  if (strides[0] < 1 || strides[1] < 1) return false;
  return (strides[1] == 1 && strides[0] >= shape.dim[1]) || (strides[0] == 1 && strides[1] >= shape.dim[0]);
}

int op_logits_gemms(const struct node *node, const struct value *x, const struct value *weight,
                    const struct value *dweight, bool makes_logits, struct op_gemm *gemms) {
  const int64_t all = op_rows(x->shape), rows = node_int(node, "rows"), last = all % rows;
  const int64_t depth = op_columns(x->shape), columns = op_logits_classes(weight);
  const enum dtype type = x->dtype, sum = dweight != NULL ? dweight->dtype : type;
  int n = 0;
  if (makes_logits) gemms[n++] = (struct op_gemm){"logits", rows, depth, columns, type, type};
  if (makes_logits && last > 0) gemms[n++] = (struct op_gemm){"last_logits", last, depth, columns, type, type};
  if (dweight == NULL) return n;
  gemms[n++] = (struct op_gemm){"dx", rows, columns, depth, type, type};
  gemms[n++] = (struct op_gemm){"dweight", depth, rows, columns, type, sum};
  if (all > rows) gemms[n++] = (struct op_gemm){"next_dweight", depth, rows, columns, type, sum};
  if (last == 0) return n;
  gemms[n++] = (struct op_gemm){"last_dx", last, columns, depth, type, type};
  gemms[n++] = (struct op_gemm){"last_dweight", depth, last, columns, type, sum};
  return n;
}

double op_logits_matmul_flops(const struct value *x, const struct value *weight) {
  return 2 * (double)shape_count(x->shape) * (double)op_logits_classes(weight);
}

struct over_logits *op_over_logits(struct arena *arena, const struct node *node, const char *kind,
                                   const struct value *x, const struct value *weight) {
  struct over_logits *parts = arena_alloc(arena, sizeof *parts);
  parts->logits.shape = x->shape;
  parts->logits.shape.dim[x->shape.rank - 1] = op_logits_classes(weight);
  parts->node = *node;
  parts->node.kind = op_kind_find(kind);
  parts->node.inputs = parts->operands;
  return parts;
}

double *op_logits_multiply(struct arena *arena, const double *x, const double *weight, int64_t rows, int64_t depth,
                           int64_t columns) {
  double *y = arena_alloc(arena, (size_t)(rows * columns) * sizeof *y);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t d = 0; d < depth; d++)
      for (int64_t c = 0; c < columns; c++) y[r * columns + c] += x[r * depth + d] * weight[d * columns + c];
  return y;
}

void op_logits_gradients(const double *slopes, const double *x, const double *weight, int64_t rows, int64_t depth,
                         int64_t columns, double *const *outputs) {
  for (int64_t i = 0; i < rows * depth; i++) outputs[0][i] = 0;
  for (int64_t i = 0; i < depth * columns; i++) outputs[1][i] = 0;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t d = 0; d < depth; d++)
      for (int64_t c = 0; c < columns; c++) {
        outputs[0][r * depth + d] += slopes[r * columns + c] * weight[d * columns + c];
        outputs[1][d * columns + c] += x[r * depth + d] * slopes[r * columns + c];
      }
}

void op_logits_clear(const struct value *workspace, double *elements) {
  for (int64_t i = 0; i < shape_count(workspace->shape); i++) elements[i] = 0;
}
