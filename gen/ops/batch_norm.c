/* Batch normalisation (Ioffe, Szegedy, arXiv:1502.03167, algorithm 1) of x [N][C][...]: for each channel, over the M
 * elements of it in the batch, y = n weight + bias, n = (x - mean) rstd, rstd = 1 / sqrt(variance + eps). With g = dy
 * weight: dx = rstd (g - avg(g) - n avg(g n)), dweight = the sum of dy n, dbias = the sum of dy.
 *
 * Over ranks the M elements are those of all their batches, each of which has as many: the sums that averages are of
 * are added up over the ranks, here as in the gradient of x (PyTorch's SyncBatchNorm).
 *
 * Each run moves the running mean and variance towards those of the batch by `momentum`, the variance by the unbiased
 * one, as PyTorch does, and counts itself. Where the model is evaluated they replace the batch's. */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* x as [batch][channels][inner]. */
struct extents {
  int64_t batch, channels, inner;
};

static struct extents extents_of(struct shape x) {
  return (struct extents){x.dim[0], x.dim[1], shape_product(x, 2, x.rank)};
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape x = node->inputs[0]->shape;
  if (!op_check_rank(arena, node, 0, 2, error) || !op_check_float(arena, node, 0, error)) return 0;
  struct extents extents = extents_of(x);
  for (int i = 1; i < 5; i++)
    if (!op_check_shape(arena, node, i, shape_of(1, extents.channels),
                        arena_printf(arena, "one for each channel of %s", op_operand_text(arena, node, 0)), error))
      return 0;
  if (extents.batch * extents.inner < 2)
    return op_fail(arena, node, error, "%s has one value a channel, and no variance", op_operand_text(arena, node, 0));
  shapes[0] = x;
  dtypes[0] = node->inputs[0]->dtype;
  for (int o = 1; o < 5; o++) {
    shapes[o] = shape_of(1, extents.channels);
    dtypes[o] = DTYPE_FLOAT32;
  }
  shapes[5] = node->inputs[5]->shape;
  dtypes[5] = node->inputs[5]->dtype;
  return 6;
}

/* The ranks whose batches are one. */
static int64_t ranks_of(const struct node *node) {
  return node->kind->ranks.exchanged != NULL ? node_int(node, "ranks") : 1;
}

/* The mean of a channel's elements, or of their squares about `centre`. */
static double average(struct extents e, const double *x, int64_t channel, const double *centre) {
  double sum = 0;
  for (int64_t n = 0; n < e.batch; n++)
    for (int64_t i = 0; i < e.inner; i++) {
      double at = x[(n * e.channels + channel) * e.inner + i];
      sum += centre != NULL ? (at - *centre) * (at - *centre) : at;
    }
  return sum / (double)(e.batch * e.inner);
}

/* Over ranks: of which all have the same batch. */
static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct extents e = extents_of(node->inputs[0]->shape);
  double count = (double)(e.batch * e.inner * ranks_of(node)), momentum = node_real(node, "momentum");
  for (int64_t c = 0; c < e.channels; c++) {
    double mean = average(e, inputs[0], c, NULL), variance = average(e, inputs[0], c, &mean);
    double rstd = 1 / sqrt(variance + node_real(node, "eps"));
    for (int64_t n = 0; n < e.batch; n++)
      for (int64_t i = (n * e.channels + c) * e.inner, end = i + e.inner; i < end; i++)
        outputs[0][i] = (inputs[0][i] - mean) * rstd * inputs[1][c] + inputs[2][c];
    outputs[1][c] = mean;
    outputs[2][c] = rstd;
    outputs[3][c] = (1 - momentum) * inputs[3][c] + momentum * mean;
    outputs[4][c] = (1 - momentum) * inputs[4][c] + momentum * variance * count / (count - 1);
  }
  outputs[5][0] = inputs[5][0] + 1;
}

static void differentiate(struct builder *builder, const struct node *node, const char *kind,
                          const struct attribute *attributes, int n_attributes, struct value *dy, struct value **dx) {
  struct value *inputs[] = {dy, node->inputs[0], node->inputs[1], node->outputs[1], node->outputs[2]};
  struct node *backward = builder_node(builder, kind, inputs, 5, attributes, n_attributes);
  for (int i = 0; i < 3 && backward != NULL; i++) dx[i] = backward->outputs[i];
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  differentiate(builder, node, "batch_norm_backward", NULL, 0, dy[0], dx);
}

/* One for each channel as a column next to x. */
static struct value *column(struct builder *builder, struct value *vector, int rank) {
  struct shape shape = {.rank = rank - 1};
  for (int i = 1; i < shape.rank; i++) shape.dim[i] = 1;
  shape.dim[0] = vector->shape.dim[0];
  return op_reshape(builder, vector, shape);
}

/* (x - mean) / sqrt(variance + eps) * weight + bias of statistics that are given. */
static struct value *normalize(struct builder *builder, struct value *const *inputs, double eps) {
  int rank = inputs[0]->shape.rank;
  struct value *rstd = builder_unary(builder, "rsqrt", op_shift(builder, inputs[4], eps));
  struct value *factor = op_mul(builder, rstd, inputs[1]);
  struct value *offset = op_sub(builder, inputs[2], op_mul(builder, inputs[3], factor));
  struct value *y = op_mul(builder, inputs[0], column(builder, factor, rank));
  return op_add(builder, y, column(builder, offset, rank));
}

static struct value *evaluated(struct builder *builder, const struct node *node) {
  return builder_cast(builder, normalize(builder, node->inputs, node_real(node, "eps")), node->outputs[0]->dtype);
}

/* ---- Over ranks ---- */

static void gradient_over_ranks(struct builder *builder, const struct node *node, struct value *const *dy,
                                struct value **dx) {
  struct attribute ranks = attribute_int("ranks", node_int(node, "ranks"));
  differentiate(builder, node, "sync_batch_norm_backward", &ranks, 1, dy[0], dx);
}

/* After the other `count` results, workspace for two sums of each channel. */
static int add_sums(int count, int64_t channels, struct shape *shapes, enum dtype *dtypes) {
  if (count == 0) return 0;
  shapes[count] = shape_of(2, INT64_C(2), channels);
  dtypes[count] = DTYPE_FLOAT64;
  return count + 1;
}

static int infer_over_ranks(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                            const char **error) {
  return add_sums(infer(arena, node, shapes, dtypes, error), node->inputs[0]->shape.dim[1], shapes, dtypes);
}

/* The sums of each channel. */
static struct op_exchange exchanged(const struct node *node) {
  return (struct op_exchange){.what = "statistics",
                              .count = shape_count(node->outputs[node->n_outputs - 1]->shape),
                              .dtype = DTYPE_FLOAT64,
                              .axis = -1};
}

static const struct op_kind kind_over_ranks = {
    .name = "sync_batch_norm",
    .class = OP_KERNEL,
    .input_names = {"x", "weight", "bias", "running_mean", "running_var", "num_batches_tracked"},
    .output_names = {"y", "mean", "rstd", "next_mean", "next_var", "next_count", "sums"},
    .infer = infer_over_ranks,
    .gradient = gradient_over_ranks,
    .memory.assigns = {0, 0, 0, 4, 5, 6},
    .memory.workspace = 1 << 6,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_AS_IS},
    .cost.flops_each = 7,
    .reference.evaluate = reference,
    .ranks.exchanged = exchanged,
};

/* Of the running statistics, as a model is evaluated. */
static void write_onnx(struct onnx *onnx) {
  const struct attribute eps = attribute_real("epsilon", onnx_real(onnx, "eps"));
  const char *inputs[5];
  for (int i = 0; i < 5; i++) inputs[i] = onnx_input(onnx, i);
  onnx_ignore(onnx, "momentum");
  onnx_result(onnx, 0, onnx_op(onnx, "BatchNormalization", inputs, 5, &eps, 1));
}

/* The mean over the elements of each channel: [channels]. */
static struct hlo lower_mean(struct stablehlo *hlo, struct hlo x) {
  struct shape axes = {.rank = x.shape.rank - 1};
  for (int i = 1; i < axes.rank; i++) axes.dim[i] = i + 1;
  const double count = (double)(shape_count(x.shape) / x.shape.dim[1]);
  return hlo_div(hlo, hlo_reduce(hlo, "add", x, axes, false), hlo_number(count));
}

/* One for each channel, as x is. */
static struct hlo lower_column(struct stablehlo *hlo, struct hlo vector, struct hlo x) {
  return hlo_broadcast_in(hlo, vector, x.shape, shape_of(1, INT64_C(1)));
}

/* (1 - momentum) before + momentum now */
static struct hlo lower_moved(struct stablehlo *hlo, struct hlo before, struct hlo now, double momentum) {
  return hlo_add(hlo, hlo_mul(hlo, before, hlo_number(1 - momentum)), hlo_mul(hlo, now, hlo_number(momentum)));
}

static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const struct hlo x = hlo_input(hlo, 0), mean = lower_mean(hlo, x);
  const struct hlo centred = hlo_sub(hlo, x, lower_column(hlo, mean, x));
  const struct hlo variance = lower_mean(hlo, hlo_mul(hlo, centred, centred));
  const struct hlo rstd = hlo_unary(hlo, "rsqrt", hlo_add(hlo, variance, hlo_number(node_real(node, "eps"))));
  const struct hlo factor = hlo_mul(hlo, rstd, hlo_input(hlo, 1));
  const double momentum = node_real(node, "momentum"), count = (double)(shape_count(x.shape) / x.shape.dim[1]);
  hlo_result(
      hlo, 0,
      hlo_add(hlo, hlo_mul(hlo, centred, lower_column(hlo, factor, x)), lower_column(hlo, hlo_input(hlo, 2), x)));
  hlo_result(hlo, 1, mean);
  hlo_result(hlo, 2, rstd);
  hlo_result(hlo, 3, lower_moved(hlo, hlo_input(hlo, 3), mean, momentum));
  hlo_result(hlo, 4,
             lower_moved(hlo, hlo_input(hlo, 4), hlo_mul(hlo, variance, hlo_number(count / (count - 1))), momentum));
  hlo_result(hlo, 5, hlo_add(hlo, hlo_raw_input(hlo, 5), hlo_number(1)));
}

static const struct op_kind kind = {
    .name = "batch_norm",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x", "weight", "bias", "running_mean", "running_var", "num_batches_tracked"},
    .output_names = {"y", "mean", "rstd", "next_mean", "next_var", "next_count"},
    .infer = infer,
    .gradient = gradient,
    .memory.assigns = {0, 0, 0, 4, 5, 6},
    .evaluation.substitute = evaluated,
    .ranks.over_ranks = &kind_over_ranks,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_AS_IS},
    .cost.flops_each = 7,
    .choice.variants = op_threads,
    .choice.what = "threads",
    .reference.evaluate = reference,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  return op_infer_norm_backward(arena, node, shapes, dtypes, 3, error);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct extents e = extents_of(node->inputs[1]->shape);
  double count = (double)(e.batch * e.inner);
  for (int64_t c = 0; c < e.channels; c++) {
    double mean = inputs[3][c], rstd = inputs[4][c], sum = 0, product = 0;
    for (int64_t n = 0; n < e.batch; n++)
      for (int64_t i = (n * e.channels + c) * e.inner, end = i + e.inner; i < end; i++) {
        sum += inputs[0][i];
        product += inputs[0][i] * (inputs[1][i] - mean) * rstd;
      }
    for (int64_t n = 0; n < e.batch; n++)
      for (int64_t i = (n * e.channels + c) * e.inner, end = i + e.inner; i < end; i++)
        outputs[0][i] =
            rstd * inputs[2][c] * (inputs[0][i] - sum / count - (inputs[1][i] - mean) * rstd * product / count);
    outputs[1][c] = product;
    outputs[2][c] = sum;
  }
}

static void lower_backward(struct stablehlo *hlo) {
  const struct hlo dy = hlo_input(hlo, 0), x = hlo_input(hlo, 1), rstd = hlo_input(hlo, 4);
  const struct hlo centred = hlo_sub(hlo, x, lower_column(hlo, hlo_input(hlo, 3), x));
  const struct hlo n = hlo_mul(hlo, centred, lower_column(hlo, rstd, x));
  const struct hlo mean = lower_mean(hlo, dy), product = lower_mean(hlo, hlo_mul(hlo, dy, n));
  const struct hlo count = hlo_number((double)(shape_count(x.shape) / x.shape.dim[1]));
  const struct hlo rest =
      hlo_sub(hlo, hlo_sub(hlo, dy, lower_column(hlo, mean, x)), hlo_mul(hlo, n, lower_column(hlo, product, x)));
  hlo_result(hlo, 0, hlo_mul(hlo, rest, lower_column(hlo, hlo_mul(hlo, rstd, hlo_input(hlo, 2)), x)));
  hlo_result(hlo, 1, hlo_mul(hlo, product, count));
  hlo_result(hlo, 2, hlo_mul(hlo, mean, count));
}

static const struct op_kind kind_backward = {
    .name = "batch_norm_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .template_name = "batch_norm",
    .input_names = {"dy", "x", "weight", "mean", "rstd"},
    .output_names = {"dx", "dweight", "dbias"},
    .infer = infer_backward,
    .memory.accumulates = 1 | 2 | 4,
    .memory.in_place = {1},
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_AS_IS},
    .cost.flops_each = 12,
    .choice.variants = op_threads,
    .choice.what = "threads",
    .reference.evaluate = reference_backward,
};

static int infer_backward_over_ranks(struct arena *arena, const struct node *node, struct shape *shapes,
                                     enum dtype *dtypes, const char **error) {
  return add_sums(infer_backward(arena, node, shapes, dtypes, error), node->inputs[1]->shape.dim[1], shapes, dtypes);
}

/* dweight and dbias are of a rank's own samples. */
static const struct op_kind kind_backward_over_ranks = {
    .name = "sync_batch_norm_backward",
    .class = OP_KERNEL,
    .template_name = "sync_batch_norm",
    .input_names = {"dy", "x", "weight", "mean", "rstd"},
    .output_names = {"dx", "dweight", "dbias", "sums"},
    .infer = infer_backward_over_ranks,
    .memory.accumulates = 1 | 2 | 4,
    .memory.workspace = 1 << 3,
    .memory.in_place = {1},
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_AS_IS},
    .cost.flops_each = 12,
    .reference.evaluate = reference_backward,
    .ranks.exchanged = exchanged,
};

/* ---- Functions: weight and running variance start at one, bias and running mean at zero ---- */

static bool collect(struct builder *builder, const struct argument *arguments, struct value **inputs) {
  const struct scope *scope = arguments[0].scope;
  struct value *x = inputs[0] = op_tensor(arguments, 1);
  if (x == NULL) return false;
  if (x->shape.rank < 2) {
    builder_error(builder, "batch_norm: x %s must be [batch][channels] or more",
                  shape_text(builder_arena(builder), x->shape));
    return false;
  }
  struct shape shape = shape_of(1, x->shape.dim[1]);
  inputs[1] = op_fixed_parameter(builder, scope, "weight", shape, INIT_ONES);
  inputs[2] = op_fixed_parameter(builder, scope, "bias", shape, INIT_ZEROS);
  inputs[3] = builder_buffer(builder, scope, "running_mean", shape, DTYPE_FLOAT32, INIT_ZEROS);
  inputs[4] = builder_buffer(builder, scope, "running_var", shape, DTYPE_FLOAT32, INIT_ONES);
  inputs[5] = builder_buffer(builder, scope, "num_batches_tracked", (struct shape){0}, DTYPE_INT64, INIT_ZEROS);
  for (int i = 1; i < 6; i++)
    if (inputs[i] == NULL) return false;
  return true;
}

static struct value *batch_norm(struct builder *builder, const struct argument *arguments, double eps,
                                double momentum) {
  struct value *inputs[6];
  struct attribute attributes[] = {attribute_real("eps", eps), attribute_real("momentum", momentum)};
  if (!collect(builder, arguments, inputs)) return NULL;
  return builder_op(builder, "batch_norm", inputs, 6, attributes, 2);
}

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return batch_norm(builder, arguments, 1e-5, 0.1);
}

static struct value *build_with(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return batch_norm(builder, arguments, arguments[2].real, arguments[3].real);
}

const struct op_file op_file_batch_norm = {
    .name = "batch_norm",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, &kind_over_ranks, &kind_backward_over_ranks, NULL},
    .functions =
        (const struct op_function[]){{"batch_norm", .build = build}, {"batch_norm_with", .build = build_with}, {0}},
};
