#include "gen/ir/op_support.h"

#include <assert.h>

/* ---- Shape rules ---- */

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

/* ---- Shapes ---- */

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

/* ---- References ---- */

/* The place in `shape` of element `i` of `out`, to which it broadcasts. */
static int64_t broadcast_place(struct shape out, int64_t i, struct shape shape) {
  int64_t place = 0, stride = 1;
  for (int d = 1; d <= shape.rank; d++) {
    int64_t extent = out.dim[out.rank - d];
    if (shape.dim[shape.rank - d] != 1) place += i % extent * stride;
    stride *= shape.dim[shape.rank - d];
    i /= extent;
  }
  return place;
}

void op_map(const struct node *node, const double *const *inputs, double *output,
            double (*apply)(const struct node *node, const double *x)) {
  struct shape shape = node->outputs[0]->shape;
  for (int64_t i = 0; i < shape_count(shape); i++) {
    double x[4] = {0};
    for (int k = 0; k < node->n_inputs; k++) x[k] = inputs[k][broadcast_place(shape, i, node->inputs[k]->shape)];
    output[i] = apply(node, x);
  }
}

/* ---- Costs ---- */

double op_flops_none(const struct node *node) {
  (void)node;
  return 0;
}

double op_flops_each(const struct node *node, int index, double each) {
  return each * (double)shape_count(node->inputs[index]->shape);
}

/* ---- Building ---- */

struct value *op_tensor(const struct argument *arguments, int index) {
  return arguments[index].tensor;
}

static struct value *with_real(struct builder *builder, const char *kind, struct value *x, double value) {
  struct attribute attribute = attribute_real("value", value);
  return builder_op(builder, kind, &x, 1, &attribute, 1);
}

struct mean op_mean_kept(const struct node *node, const struct mean *inputs) {
  (void)node;
  return inputs[0];
}

struct mean op_mean_added(const struct node *node, const struct mean *inputs) {
  struct mean a = inputs[0], b = inputs[1];
  if (a.form == MEAN_SAME && b.form != MEAN_SUM) return b;
  if (b.form == MEAN_SAME && a.form != MEAN_SUM) return a;
  bool fixed = a.form == MEAN_FIXED, same = a.most == b.most && a.of == b.of && a.without == b.without;
  if (a.form != b.form || (!fixed && !same)) return (struct mean){.form = MEAN_NONE};
  if (a.form != MEAN_COUNTED) a.count = node->outputs[0];
  return a;
}

struct value *op_scale(struct builder *builder, struct value *x, double value) {
  return with_real(builder, "scale", x, value);
}

struct value *op_shift(struct builder *builder, struct value *x, double value) {
  return with_real(builder, "shift", x, value);
}

static struct value *with_dims(struct builder *builder, const char *kind, struct value *x, struct shape shape) {
  if (x == NULL || shape_equal(x->shape, shape)) return x;
  struct attribute attribute = attribute_ints("dims", shape);
  return builder_op(builder, kind, &x, 1, &attribute, 1);
}

struct value *op_reshape(struct builder *builder, struct value *x, struct shape shape) {
  return with_dims(builder, "reshape", x, shape);
}

struct value *op_broadcast(struct builder *builder, struct value *x, struct shape shape) {
  return with_dims(builder, "broadcast", x, shape);
}

struct value *op_transpose(struct builder *builder, struct value *x, int a, int b) {
  if (a == b) return x;
  struct attribute attributes[] = {attribute_int("a", a), attribute_int("b", b)};
  return builder_op(builder, "transpose", &x, 1, attributes, 2);
}

struct value *op_matrix_transpose(struct builder *builder, struct value *x) {
  return x == NULL ? NULL : op_transpose(builder, x, x->shape.rank - 2, x->shape.rank - 1);
}

struct value *op_clamp(struct builder *builder, struct value *x, double low, double high) {
  struct attribute attributes[] = {attribute_real("low", low), attribute_real("high", high)};
  return builder_op(builder, "clamp", &x, 1, attributes, 2);
}

struct value *op_sum(struct builder *builder, struct value *x, struct shape axes) {
  if (axes.rank == 0) return x;
  struct attribute attribute = attribute_ints("axes", axes);
  return builder_op(builder, "sum", &x, 1, &attribute, 1);
}

struct value *op_mean_all(struct builder *builder, struct value *x) {
  if (x == NULL) return NULL;
  struct shape axes = {.rank = x->shape.rank};
  for (int i = 0; i < axes.rank; i++) axes.dim[i] = i;
  return op_scale(builder, op_sum(builder, x, axes), 1 / (double)shape_count(x->shape));
}

struct value *op_constant(struct builder *builder, double value, struct shape shape) {
  struct attribute attributes[] = {attribute_real("value", value), attribute_ints("dims", shape)};
  return builder_op(builder, "constant", NULL, 0, attributes, 2);
}

struct value *op_arange(struct builder *builder, int64_t count) {
  struct attribute attribute = attribute_int("count", count);
  return builder_op(builder, "arange", NULL, 0, &attribute, 1);
}

struct value *op_slice(struct builder *builder, struct value *x, int axis, int64_t start, int64_t count) {
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("start", start),
                                   attribute_int("count", count)};
  return builder_op(builder, "slice", &x, 1, attributes, 3);
}

struct value *op_apply(struct builder *builder, const char *name, struct value *const *tensors, int n) {
  struct argument arguments[4] = {0};
  assert(n <= 4);
  for (int i = 0; i < n; i++) {
    if (tensors[i] == NULL) return NULL;
    arguments[i] = (struct argument){.kind = ARGUMENT_TENSOR, .tensor = tensors[i]};
  }
  return op_function_find(name)->build(builder, arguments, n);
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
