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

bool op_is_plain(struct timeline timeline) {
  return timeline.axis >= 0 && timeline.more == 0 && timeline.order == NULL;
}

bool op_is_at(struct timeline timeline, int axis) {
  return op_is_plain(timeline) && timeline.axis == axis && timeline.before == 0;
}

struct value *op_cache(struct builder *builder, const struct new_positions *new, const char *name, struct shape shape) {
  if (new->number > 0) name = arena_printf(builder_arena(builder), "%s_%d", name, new->number);
  return builder_passing(builder, new->scope, name, shape);
}

struct value *op_conv_cache(struct builder *builder, struct new_positions *new, int input, int64_t count,
                            struct value *first) {
  struct value *x = new->inputs[input];
  new->timeline = new->timelines[input];
  if (!dtype_is_float(x->dtype)) return NULL; /* buffers of integers cannot be kept */
  struct attribute axis = attribute_int("axis", new->timeline.axis);
  struct value *inputs[5] = {x,
                             op_cache(builder, new, "conv_cache", op_with_extent(x->shape, new->timeline.axis, count))};
  int n = 2;
  if (first != NULL) inputs[n++] = first;
  inputs[n++] = new->at;
  if (new->valid != NULL) inputs[n++] = new->valid;
  new->timeline.before += (int)count;
  return builder_op(builder, first != NULL ? "conv_cache_from" : "conv_cache", inputs, n, &axis, 1);
}

static bool check_number(struct arena *arena, const struct node *node, int index, const char **error) {
  return op_check_dtype(arena, node, index, DTYPE_INT32, error) &&
         op_check_shape(arena, node, index, shape_of(1, INT64_C(1)), "a number", error);
}

bool op_check_at(struct arena *arena, const struct node *node, int index, const char **error) {
  return check_number(arena, node, index, error) &&
         (node->n_inputs <= index + 1 || check_number(arena, node, index + 1, error));
}

int64_t op_valid(const struct node *node, const double *const *inputs, int index, int64_t width) {
  return node->n_inputs > index ? (int64_t)inputs[index][0] : width;
}
