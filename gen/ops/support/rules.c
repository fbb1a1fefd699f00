#include "gen/ops/support/support.h"

static const char *operand_name(struct arena *arena, const struct node *node, int index) {
  int named = 0;
  while (named < 10 && node->kind->input_names[named] != NULL) named++;
  if (index < named) return node->kind->input_names[index];
  return arena_printf(arena, "operand %d", index + 1);
}

const char *op_operand_text(struct arena *arena, const struct node *node, int index) {
  const struct value *value = node->inputs[index];
  const char *name = operand_name(arena, node, index), *shape = shape_text(arena, value->shape);
  return value->name != NULL ? arena_printf(arena, "%s ('%s') %s", name, value->name, shape)
                             : arena_printf(arena, "%s %s", name, shape);
}

int op_fail(struct arena *arena, const struct node *node, const char **error, const char *format, ...) {
  va_list args;
  va_start(args, format);
  *error = arena_printf(arena, "%s: %s", node->kind->name, arena_vprintf(arena, format, args));
  va_end(args);
  return 0;
}

int op_result(struct shape *shapes, enum dtype *dtypes, struct shape shape, enum dtype dtype) {
  shapes[0] = shape;
  dtypes[0] = dtype;
  return 1;
}

bool op_check_dtype(struct arena *arena, const struct node *node, int index, enum dtype dtype, const char **error) {
  if (node->inputs[index]->dtype == dtype) return true;
  const char *help = dtype == DTYPE_FLOAT32 ? "; write cast_float(...) around it" : "";
  op_fail(arena, node, error, "%s is %s, where %s is needed%s", op_operand_text(arena, node, index),
          dtype_name(node->inputs[index]->dtype), dtype_name(dtype), help);
  return false;
}

bool op_check_float(struct arena *arena, const struct node *node, int index, const char **error) {
  return dtype_is_float(node->inputs[index]->dtype) || op_check_dtype(arena, node, index, DTYPE_FLOAT32, error);
}

bool op_check_same_float(struct arena *arena, const struct node *node, int count, const char **error) {
  for (int i = 0; i < count; i++) {
    if (!op_check_float(arena, node, i, error)) return false;
    if (node->inputs[i]->dtype == node->inputs[0]->dtype) continue;
    op_fail(arena, node, error, "%s is %s, but %s is %s", op_operand_text(arena, node, 0),
            dtype_name(node->inputs[0]->dtype), op_operand_text(arena, node, i), dtype_name(node->inputs[i]->dtype));
    return false;
  }
  return true;
}

bool op_check_rank(struct arena *arena, const struct node *node, int index, int rank, const char **error) {
  if (node->inputs[index]->shape.rank >= rank) return true;
  op_fail(arena, node, error, "%s has %d dimension%s, where at least %d %s needed", op_operand_text(arena, node, index),
          node->inputs[index]->shape.rank, node->inputs[index]->shape.rank == 1 ? "" : "s", rank,
          rank == 1 ? "is" : "are");
  return false;
}

bool op_check_shape(struct arena *arena, const struct node *node, int index, struct shape shape, const char *what,
                    const char **error) {
  if (shape_equal(node->inputs[index]->shape, shape)) return true;
  op_fail(arena, node, error, "%s must be %s, %s", op_operand_text(arena, node, index), shape_text(arena, shape), what);
  return false;
}

int op_infer_norm_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                           int count, const char **error) {
  if (!op_check_shape(arena, node, 0, node->inputs[1]->shape, "like x", error)) return 0;
  for (int o = 0; o < count; o++) {
    const struct value *of = node->inputs[o == 0 ? 1 : 2];
    shapes[o] = of->shape;
    dtypes[o] = of->dtype;
  }
  return count;
}

int op_infer_like(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                  const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, node->inputs[0]->dtype);
}
