#include "gen/ops/support/elementwise.h"

static enum dtype promoted(const struct node *node) {
  bool scalars = true;
  for (int i = 0; i < node->n_inputs; i++) scalars &= node->inputs[i]->shape.rank == 0;
  const struct value *first = NULL;
  enum dtype widest = DTYPE_FLOAT32;
  for (int i = 0; i < node->n_inputs; i++) {
    if (node->inputs[i]->shape.rank == 0 && !scalars) continue;
    widest = first == NULL ? node->inputs[i]->dtype : dtype_widest(widest, node->inputs[i]->dtype);
    first = node->inputs[i];
  }
  return widest;
}

int op_infer_elementwise(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                         const char **error) {
  struct shape shape = node->inputs[0]->shape;
  for (int i = 0; i < node->n_inputs; i++)
    if (!op_check_float(arena, node, i, error)) return 0;
  for (int i = 1; i < node->n_inputs; i++)
    if (!shape_broadcast(shape, node->inputs[i]->shape, &shape))
      return op_fail(arena, node, error, "%s and %s do not broadcast", op_operand_text(arena, node, 0),
                     op_operand_text(arena, node, i));
  return op_result(shapes, dtypes, shape, promoted(node));
}

/* The position in `shape` of element `i` of `out`, to which it broadcasts. */
static int64_t broadcast_index(struct shape out, int64_t i, struct shape shape) {
  int64_t index = 0, stride = 1;
  for (int d = 1; d <= shape.rank; d++) {
    int64_t extent = out.dim[out.rank - d];
    if (shape.dim[shape.rank - d] != 1) index += i % extent * stride;
    stride *= shape.dim[shape.rank - d];
    i /= extent;
  }
  return index;
}

void op_reference_elementwise(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct shape shape = node->outputs[0]->shape;
  for (int64_t i = 0; i < shape_count(shape); i++) {
    double x[4] = {0};
    for (int k = 0; k < node->n_inputs; k++) x[k] = inputs[k][broadcast_index(shape, i, node->inputs[k]->shape)];
    outputs[0][i] = node->kind->reference.scalar != NULL ? node->kind->reference.scalar(x[0])
                                                         : node->kind->reference.apply(node, x);
  }
}

void op_reference_slope(const struct node *node, const double *const *inputs, double *const *outputs) {
  if (node->kind->reference.scalar == NULL) {
    op_reference_elementwise(node, inputs, outputs);
    return;
  }
  struct shape shape = node->outputs[0]->shape;
  for (int64_t i = 0; i < shape_count(shape); i++) {
    double dy = inputs[0][broadcast_index(shape, i, node->inputs[0]->shape)];
    outputs[0][i] = dy * node->kind->reference.scalar(inputs[1][broadcast_index(shape, i, node->inputs[1]->shape)]);
  }
}

static struct value *slope(struct builder *builder, const struct node *node, struct value *dy, struct value *of) {
  return builder_op(builder, node->kind->slope->name, (struct value *[]){dy, of}, 2, node->attributes,
                    node->n_attributes);
}

void op_gradient_of_x(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = slope(builder, node, dy[0], node->inputs[0]);
}

void op_gradient_of_y(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = slope(builder, node, dy[0], node->outputs[0]);
}

void op_gradient_of_choice(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx,
                           bool larger) {
  for (int i = 0; i < 2; i++) {
    struct value *mine = node->inputs[i], *other = node->inputs[1 - i];
    if (!builder_wants_gradient(builder, mine)) continue;
    struct value *wins = larger ? op_greater(builder, mine, other) : op_greater(builder, other, mine);
    struct value *loses = larger ? op_greater(builder, other, mine) : op_greater(builder, mine, other);
    struct value *twice = op_shift(builder, op_sub(builder, wins, loses), 1);
    dx[i] = op_unbroadcast(builder, op_mul(builder, dy[0], op_scale(builder, twice, 0.5)), mine->shape);
  }
}

void op_gradient_same(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  (void)builder;
  (void)node;
  dx[0] = dy[0];
}
