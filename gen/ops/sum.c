/* y = the sum of x over the dimensions `axes`, which are then gone; dx = dy in each of the positions that were summed.
 */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* Bit i: dimension i is summed. */
static unsigned summed(const struct node *node) {
  struct shape axes = node_ints(node, "axes");
  unsigned bits = 0;
  for (int i = 0; i < axes.rank; i++) bits |= 1u << axes.dim[i];
  return bits;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape x = node->inputs[0]->shape, axes = node_ints(node, "axes"), y = {0};
  if (!op_check_float(arena, node, 0, error)) return 0;
  for (int i = 0; i < axes.rank; i++)
    if (axes.dim[i] < 0 || axes.dim[i] >= x.rank)
      return op_fail(arena, node, error, "%s has no axis %lld", op_operand_text(arena, node, 0),
                     (long long)axes.dim[i]);
  for (int i = 0; i < x.rank; i++)
    if (!(summed(node) >> i & 1)) y.dim[y.rank++] = x.dim[i];
  return op_result(shapes, dtypes, y, node->inputs[0]->dtype);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct shape x = node->inputs[0]->shape, y = node->outputs[0]->shape;
  unsigned gone = summed(node);
  for (int64_t i = 0; i < shape_count(y); i++) outputs[0][i] = 0;
  for (int64_t i = 0; i < shape_count(x); i++) {
    int64_t rest = i, index = 0, stride = 1;
    for (int d = x.rank - 1; d >= 0; d--) {
      if (!(gone >> d & 1)) {
        index += rest % x.dim[d] * stride;
        stride *= x.dim[d];
      }
      rest /= x.dim[d];
    }
    outputs[0][index] += inputs[0][i];
  }
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct shape x = node->inputs[0]->shape, kept = x;
  unsigned gone = summed(node);
  for (int i = 0; i < x.rank; i++)
    if (gone >> i & 1) kept.dim[i] = 1;
  dx[0] = op_broadcast(builder, op_reshape(builder, dy[0], kept), x);
}

/* The dimensions that are left, in order. */
static int along(const struct node *node, int axis, int input) {
  (void)input;
  int own = 0;
  for (int left = axis;; own++)
    if (!(summed(node) >> own & 1) && left-- == 0) return own;
}

/* A part of a dimension that is summed gives a partial sum. */
static bool place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const struct placement split = placements[seed];
  (void)ranks;
  if (seed == 1) {
    placements[0] = placement_split(along(node, split.dim, 0), split.blocks);
    return true;
  }
  int before = 0;
  for (int i = 0; i < split.dim; i++) before += !(summed(node) >> i & 1);
  bool gone = summed(node) >> split.dim & 1;
  placements[1] = gone ? (struct placement){.form = PLACED_PARTIAL} : placement_split(before, split.blocks);
  return true;
}

static struct mean mean(const struct node *node, const struct mean *inputs) {
  if (shape_count(node->inputs[0]->shape) == 1) return inputs[0];
  double terms = (double)shape_count(node->inputs[0]->shape);
  return (struct mean){.form = MEAN_SUM, .most = terms, .terms = terms, .count = node->outputs[0]};
}

static void write_onnx(struct onnx *onnx) {
  const struct shape axes = onnx_ints(onnx, "axes");
  const struct attribute keeps = attribute_int("keepdims", 0);
  struct onnx_extent along[MAX_RANK];
  for (int i = 0; i < axes.rank; i++) along[i] = onnx_fixed(axes.dim[i]);
  const char *inputs[] = {onnx_input(onnx, 0), onnx_shape(onnx, along, axes.rank)};
  onnx_result(onnx, 0, axes.rank == 0 ? inputs[0] : onnx_op(onnx, "ReduceSum", inputs, 2, &keeps, 1));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_reduce(hlo, "add", hlo_input(hlo, 0), node_ints(hlo_node(hlo), "axes"), false));
}

static const struct op_kind kind = {
    .name = "sum",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = along,
    .ranks.place = place,
    .gradient = gradient,
    .memory.accumulates = 1,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .cost.flops_each = 1,
    .evaluation.mean = mean,
    .choice.variants = op_threads,
    .choice.what = "threads",
    .reference.evaluate = reference,
};

/* ---- Functions ---- */

static struct value *over_one(struct builder *builder, const char *function, const struct argument *arguments,
                              bool mean) {
  struct value *x = op_tensor(arguments, 0);
  if (x == NULL) return NULL;
  int axis = op_axis(builder, function, x, &arguments[1]);
  if (axis < 0) return NULL;
  struct value *y = op_sum(builder, x, shape_of(1, (int64_t)axis));
  return mean ? op_scale(builder, y, 1 / (double)x->shape.dim[axis]) : y;
}

static struct value *build_sum(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return over_one(builder, "sum", arguments, false);
}

static struct value *build_mean(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return over_one(builder, "mean", arguments, true);
}

static struct value *build_sum_all(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  if (x == NULL) return NULL;
  struct shape axes = {.rank = x->shape.rank};
  for (int i = 0; i < axes.rank; i++) axes.dim[i] = i;
  return op_sum(builder, x, axes);
}

static struct value *build_mean_all(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return op_mean_all(builder, op_tensor(arguments, 0));
}

/* variance(x, axis): the mean of squares of what differs from the mean */
static struct value *build_variance(struct builder *builder, const struct argument *arguments, int count) {
  struct value *x = op_tensor(arguments, 0), *mean = build_mean(builder, arguments, count);
  if (mean == NULL) return NULL;
  mean = op_reshape(builder, mean, op_with_extent(x->shape, shape_axis(x->shape, arguments[1].integer), 1));
  struct argument squares[] = {arguments[0], arguments[1]};
  squares[0].tensor = op_square(builder, op_sub(builder, x, mean));
  return build_mean(builder, squares, count);
}

const struct op_file op_file_sum = {
    .name = "sum",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"sum", .build = build_sum},
                                              {"mean", .build = build_mean},
                                              {"variance", .build = build_variance},
                                              {"sum_all", .build = build_sum_all},
                                              {"mean_all", .build = build_mean_all},
                                              {0}},
};
