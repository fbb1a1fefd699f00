/* What elementwise operations share: each gives its float64 reference of one element, and the rest of its own. */
#ifndef ACCEL_OPS_ELEMENTWISE_H
#define ACCEL_OPS_ELEMENTWISE_H

#include "gen/ops/support/support.h"

/* The fields of a kind y of x, of a kind y of a and b, and of a gradient dx = dy times kind->scalar(x) (or
 * kind->apply of dy and x). In all of them the result may take over the first input's memory. */
#define OP_UNARY                                                                                                       \
  .class = OP_ELEMENTWISE, .input_names = {"x"}, .output_names = {"y"}, .infer = op_infer_elementwise,                 \
  .memory.in_place = {1}, .reference.evaluate = op_reference_elementwise
#define OP_BINARY                                                                                                      \
  .class = OP_ELEMENTWISE, .input_names = {"a", "b"}, .output_names = {"y"}, .infer = op_infer_elementwise,            \
  .memory.in_place = {1}, .reference.evaluate = op_reference_elementwise
#define OP_SLOPE(operand)                                                                                              \
  .class = OP_ELEMENTWISE, .input_names = {"dy", operand}, .output_names = {"dx"}, .infer = op_infer_elementwise,      \
  .memory.in_place = {1}, .reference.evaluate = op_reference_slope

/* The infer of a kind over floating point: the inputs, broadcast; the widest of their types, where scalars count only
 * if all are (PyTorch's type promotion). */
int op_infer_elementwise(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                         const char **error);

/* outputs[0][i] = kind->scalar or kind->apply of the inputs' elements at i, broadcast; at most 4 inputs. */
void op_reference_elementwise(const struct node *node, const double *const *inputs, double *const *outputs);

/* The same times the first input, where kind->scalar is of the second one. */
void op_reference_slope(const struct node *node, const double *const *inputs, double *const *outputs);

/* The gradient of a kind over x: kind->slope over dy and x, over dy and y; with the node's attributes. */
void op_gradient_of_x(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx);
void op_gradient_of_y(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx);

/* The gradient of the larger, or the smaller, of inputs 0 and 1: dy to it, half to each where they are equal, as
 * PyTorch. */
void op_gradient_of_choice(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx,
                           bool larger);

/* The gradient of a kind that gives dy on as it is. */
void op_gradient_same(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx);

#endif
