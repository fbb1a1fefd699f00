#include "gen/ops/support/support.h"

int op_along_rows(const struct node *node, int axis, int input) {
  if (input > 0) return AXIS_WHOLE;
  return axis < node->inputs[0]->shape.rank - 1 ? axis : AXIS_MIXED;
}

int op_along_others(const struct node *node, int axis, int input) {
  int own = (int)node_int(node, "axis"), rank = node->inputs[input]->shape.rank;
  if (node->outputs[0]->shape.rank < rank) return axis < own ? axis : axis + 1;
  return axis != own ? axis : AXIS_MIXED;
}
