/* Group normalisation (Wu, He, arXiv:1803.08494, eq. 1 to 7) of x [N][C][...]: within each sample, over the elements of
 * each of `groups` groups of neighbouring channels, n = (x - mean) rstd, rstd = 1 / sqrt(variance + eps); y = n weight
 * + bias of each channel. With g = dy weight and averages over a group: dx = rstd (g - avg(g) - n avg(g n)), dweight =
 * the sum of dy n, dbias = the sum of dy. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* x as [rows][channels of a group][inner], a row for each group of each sample. */
struct extents {
  int64_t rows, groups, channels, inner;
};

static struct extents extents_of(const struct node *node, struct shape x) {
  int64_t groups = node_int(node, "groups");
  return (struct extents){x.dim[0] * groups, groups, x.dim[1] / groups, shape_product(x, 2, x.rank)};
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape x = node->inputs[0]->shape;
  int64_t groups = node_int(node, "groups");
  if (!op_check_rank(arena, node, 0, 2, error) || !op_check_float(arena, node, 0, error)) return 0;
  if (groups < 1 || x.dim[1] % groups != 0)
    return op_fail(arena, node, error, "%lld groups do not divide the channels of %s", (long long)groups,
                   op_operand_text(arena, node, 0));
  for (int i = 1; i < 3; i++)
    if (!op_check_shape(arena, node, i, shape_of(1, x.dim[1]),
                        arena_printf(arena, "one for each channel of %s", op_operand_text(arena, node, 0)), error))
      return 0;
  shapes[0] = x;
  shapes[1] = shapes[2] = shape_of(1, extents_of(node, x).rows);
  dtypes[0] = node->inputs[0]->dtype;
  dtypes[1] = dtypes[2] = DTYPE_FLOAT32;
  return 3;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct extents e = extents_of(node, node->inputs[0]->shape);
  int64_t count = e.channels * e.inner;
  for (int64_t r = 0; r < e.rows; r++) {
    const double *x = inputs[0] + r * count;
    struct op_moments group = op_moments(x, count, node_real(node, "eps"));
    outputs[1][r] = group.mean;
    outputs[2][r] = group.rstd;
    for (int64_t i = 0; i < count; i++) {
      int64_t channel = r % e.groups * e.channels + i / e.inner;
      outputs[0][r * count + i] = (x[i] - group.mean) * group.rstd * inputs[1][channel] + inputs[2][channel];
    }
  }
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[] = {dy[0], node->inputs[0], node->inputs[1], node->outputs[1], node->outputs[2]};
  struct attribute groups = attribute_int("groups", node_int(node, "groups"));
  struct node *backward = builder_node(builder, "group_norm_backward", inputs, 5, &groups, 1);
  for (int i = 0; i < 3 && backward != NULL; i++) dx[i] = backward->outputs[i];
}

/* Of one for each channel as a column next to x. */
static const char *onnx_column(struct onnx *onnx, int input) {
  struct onnx_extent extents[MAX_RANK];
  const int rank = onnx_rank(onnx, 0) - 1;
  for (int i = 0; i < rank; i++) extents[i] = onnx_fixed(i == 0 ? -1 : 1);
  return onnx_reshape(onnx, onnx_input(onnx, input), extents, rank);
}

/* Groups are the channels of an InstanceNormalization, and the weights of channels follow. */
static void write_onnx(struct onnx *onnx) {
  const struct attribute eps = attribute_real("epsilon", onnx_real(onnx, "eps"));
  const int64_t groups = onnx_int(onnx, "groups");
  struct onnx_extent extents[MAX_RANK] = {onnx_dim(onnx, 0, 0), onnx_fixed(groups), onnx_fixed(-1)};
  double *ones = arena_alloc(onnx_arena(onnx), (size_t)groups * 2 * sizeof *ones);
  for (int64_t i = 0; i < groups; i++) ones[i] = 1;
  const char *inputs[] = {onnx_reshape(onnx, onnx_input(onnx, 0), extents, 3),
                          onnx_list(onnx, DTYPE_FLOAT32, ones, groups),
                          onnx_list(onnx, DTYPE_FLOAT32, ones + groups, groups)};
  const char *y = onnx_op(onnx, "InstanceNormalization", inputs, 3, &eps, 1);
  for (int i = 0; i < onnx_rank(onnx, 0); i++) extents[i] = onnx_dim(onnx, 0, i);
  y = onnx_binary(onnx, "Mul", onnx_reshape(onnx, y, extents, onnx_rank(onnx, 0)), onnx_column(onnx, 1));
  onnx_result(onnx, 0, onnx_binary(onnx, "Add", y, onnx_column(onnx, 2)));
}

/* x as a row for each group of each sample. */
static struct hlo lower_rows(struct stablehlo *hlo, struct hlo x) {
  const int64_t rows = x.shape.dim[0] * node_int(hlo_node(hlo), "groups");
  return hlo_reshape(hlo, x, shape_of(2, rows, shape_count(x.shape) / rows));
}

/* An input of one for each channel, next to x. */
static struct hlo lower_channels(struct stablehlo *hlo, int input, struct hlo x) {
  struct shape shape = {.rank = x.shape.rank};
  for (int i = 0; i < shape.rank; i++) shape.dim[i] = i == 1 ? x.shape.dim[1] : 1;
  return hlo_reshape(hlo, hlo_input(hlo, input), shape);
}

static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const struct hlo x = hlo_input(hlo, 0), rows = lower_rows(hlo, x), mean = hlo_row_mean(hlo, rows);
  const struct hlo d = hlo_sub(hlo, rows, mean), variance = hlo_row_mean(hlo, hlo_mul(hlo, d, d));
  const struct hlo rstd = hlo_unary(hlo, "rsqrt", hlo_add(hlo, variance, hlo_number(node_real(node, "eps"))));
  const struct hlo n = hlo_reshape(hlo, hlo_mul(hlo, d, rstd), x.shape);
  hlo_result(hlo, 0, hlo_add(hlo, hlo_mul(hlo, n, lower_channels(hlo, 1, x)), lower_channels(hlo, 2, x)));
  hlo_result(hlo, 1, mean);
  hlo_result(hlo, 2, rstd);
}

static const struct op_kind kind = {
    .name = "group_norm",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x", "weight", "bias"},
    .output_names = {"y", "mean", "rstd"},
    .infer = infer,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .cost.flops_each = 7,
    .reference.evaluate = reference,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  return op_infer_norm_backward(arena, node, shapes, dtypes, 3, error);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct extents e = extents_of(node, node->inputs[1]->shape);
  int64_t count = e.channels * e.inner;
  for (int64_t c = 0; c < e.groups * e.channels; c++) outputs[1][c] = outputs[2][c] = 0;
  for (int64_t r = 0; r < e.rows; r++) {
    const double *dy = inputs[0] + r * count, *x = inputs[1] + r * count;
    const double *weight = inputs[2] + r % e.groups * e.channels;
    double mean = inputs[3][r], rstd = inputs[4][r], sum = 0, product = 0;
    for (int64_t i = 0; i < count; i++) {
      sum += dy[i] * weight[i / e.inner];
      product += dy[i] * weight[i / e.inner] * (x[i] - mean) * rstd;
    }
    for (int64_t i = 0; i < count; i++) {
      double n = (x[i] - mean) * rstd, g = dy[i] * weight[i / e.inner];
      int64_t channel = r % e.groups * e.channels + i / e.inner;
      outputs[0][r * count + i] = rstd * (g - sum / (double)count - n * product / (double)count);
      outputs[1][channel] += dy[i] * n;
      outputs[2][channel] += dy[i];
    }
  }
}

static void lower_backward(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), x = hlo_input(hlo, 1), rows = lower_rows(hlo, x);
  const struct hlo g = lower_rows(hlo, hlo_mul(hlo, dy, lower_channels(hlo, 2, x)));
  const struct shape column = shape_of(2, rows.shape.dim[0], (int64_t)1);
  const struct hlo mean = hlo_reshape(hlo, hlo_input(hlo, 3), column);
  const struct hlo rstd = hlo_reshape(hlo, hlo_input(hlo, 4), column);
  const struct hlo n = hlo_mul(hlo, hlo_sub(hlo, rows, mean), rstd);
  const struct hlo along = hlo_mul(hlo, n, hlo_row_mean(hlo, hlo_mul(hlo, g, n)));
  const struct hlo rest = hlo_sub(hlo, hlo_sub(hlo, g, hlo_row_mean(hlo, g)), along);
  struct shape others = {.rank = x.shape.rank - 1};
  for (int i = 1; i < others.rank; i++) others.dim[i] = i + 1;
  hlo_result(hlo, 0, hlo_mul(hlo, rest, rstd));
  hlo_result(hlo, 1, hlo_reduce(hlo, "add", hlo_mul(hlo, dy, hlo_reshape(hlo, n, x.shape)), others, false));
  hlo_result(hlo, 2, hlo_reduce(hlo, "add", dy, others, false));
}

static const struct op_kind kind_backward = {
    .name = "group_norm_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .template_name = "group_norm",
    .input_names = {"dy", "x", "weight", "mean", "rstd"},
    .output_names = {"dx", "dweight", "dbias"},
    .infer = infer_backward,
    .memory.accumulates = 1 | 2 | 4,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .cost.flops_each = 14,
    .reference.evaluate = reference_backward,
};

/* ---- Functions: the weight starts at one and the bias at zero, whatever the scope says ---- */

static struct value *group_norm(struct builder *builder, const struct argument *arguments, double eps) {
  struct value *x = op_tensor(arguments, 1);
  if (x == NULL) return NULL;
  struct shape shape = shape_of(1, x->shape.rank > 1 ? x->shape.dim[1] : (int64_t)1);
  struct value *inputs[] = {x, op_fixed_parameter(builder, arguments[0].scope, "weight", shape, INIT_ONES),
                            op_fixed_parameter(builder, arguments[0].scope, "bias", shape, INIT_ZEROS)};
  struct attribute attributes[] = {attribute_int("groups", arguments[2].integer), attribute_real("eps", eps)};
  return builder_op(builder, "group_norm", inputs, 3, attributes, 2);
}

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return group_norm(builder, arguments, 1e-5);
}

static struct value *build_eps(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return group_norm(builder, arguments, arguments[3].real);
}

const struct op_file op_file_group_norm = {
    .name = "group_norm",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions =
        (const struct op_function[]){{"group_norm", .build = build}, {"group_norm_eps", .build = build_eps}, {0}},
};
