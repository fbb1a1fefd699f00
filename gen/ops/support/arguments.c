#include "gen/ops/support/support.h"

struct value *op_tensor(const struct argument *arguments, int index) {
  return arguments[index].tensor;
}

bool op_same_shape(struct builder *builder, const char *function, const struct value *x, const struct value *y) {
  if (x == NULL || y == NULL) return false;
  if (shape_equal(x->shape, y->shape)) return true;
  builder_error(builder, "%s: %s and %s must have one shape", function, shape_text(builder_arena(builder), x->shape),
                shape_text(builder_arena(builder), y->shape));
  return false;
}

int op_axis(struct builder *builder, const char *function, const struct value *x, const struct argument *argument) {
  int axis = shape_axis(x->shape, argument->integer);
  if (axis < 0)
    builder_error(builder, "%s: axis %lld is out of range for %s, which has %d dimension%s", function,
                  (long long)argument->integer, shape_text(builder_arena(builder), x->shape), x->shape.rank,
                  x->shape.rank == 1 ? "" : "s");
  return axis;
}

static bool good_extent(struct builder *builder, const char *function, const struct argument *argument,
                        bool may_infer) {
  if (argument->kind != ARGUMENT_INT) {
    builder_error(builder, "%s: an extent must be an integer", function);
    return false;
  }
  if (argument->integer >= 1 || (may_infer && argument->integer == -1)) return true;
  builder_error(builder, "%s: an extent must be at least 1%s, not %lld", function,
                may_infer ? ", or -1 for what is left" : "", (long long)argument->integer);
  return false;
}

/* No tensor of a model is that large, and products of extents stay far from overflow. */
static const int64_t most_elements = (int64_t)1 << 40;

bool op_extents(struct builder *builder, const char *function, const struct argument *arguments, int count, int first,
                bool may_infer, struct shape *shape) {
  int64_t rank = arguments[first - 1].integer;
  if (rank != count - first) {
    builder_error(builder, "%s: %lld extents announced but %d given", function, (long long)rank, count - first);
    return false;
  }
  if (rank > MAX_RANK) {
    builder_error(builder, "%s: %lld dimensions; a tensor has at most %d", function, (long long)rank, MAX_RANK);
    return false;
  }
  *shape = (struct shape){.rank = (int)rank};
  int64_t elements = 1;
  for (int i = 0; i < rank; i++) {
    if (!good_extent(builder, function, &arguments[first + i], may_infer)) return false;
    shape->dim[i] = arguments[first + i].integer;
    if (shape->dim[i] > most_elements / elements) {
      builder_error(builder, "%s: more than 2^40 elements", function);
      return false;
    }
    elements *= shape->dim[i] > 0 ? shape->dim[i] : 1;
  }
  return true;
}

struct value *op_fixed_parameter(struct builder *builder, const struct scope *scope, const char *name,
                                 struct shape shape, enum initializer_kind init) {
  struct initializer start = {.kind = init};
  return builder_parameter(builder, builder_scope_init(builder, scope, start), name, shape, start);
}
