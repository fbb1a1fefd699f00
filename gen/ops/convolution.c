/* Convolution of images (cross-correlation, as in every framework; Dumoulin, Visin, arXiv:1603.07285): x [N][C][H][W]
 * and weight [O][C / groups][kh][kw] give
 *   y[n][o][i][j] = the sum over c, k, l of weight[o][c][k][l] x[n][c of o's group][i s - p + k d][j s - p + l d]
 * with stride s, padding p and dilation d, each of height and width; x is 0 outside. It is linear in x and in the
 * weight, so its gradients are the two sums with the same terms: dx, convolution_data, and dweight,
 * convolution_weights. convolution_data as a layer of its own is the transposed convolution, and its gradients are the
 * other two again.
 *
 * `workspace` holds copies in the order that the library computes in, whose blocks are of 16 channels. */
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* Shapes of x, the weight and y, whatever of them a kind makes. */
struct geometry {
  struct shape x, weight, y;
  int64_t stride[2], padding[2], dilation[2], groups;
};

static struct geometry geometry_of(const struct node *node, struct shape x, struct shape weight, struct shape y) {
  struct geometry g = {.x = x, .weight = weight, .y = y, .groups = node_int(node, "groups")};
  for (int i = 0; i < 2; i++) {
    g.stride[i] = node_ints(node, "stride").dim[i];
    g.padding[i] = node_ints(node, "padding").dim[i];
    g.dilation[i] = node_ints(node, "dilation").dim[i];
  }
  return g;
}

/* The extent of y that follows from x's and the weight's along height (0) or width (1); below 1 when there is none. */
static int64_t result_extent(const struct geometry *g, int axis) {
  int64_t reach = (g->weight.dim[2 + axis] - 1) * g->dilation[axis] + 1;
  int64_t left = g->x.dim[2 + axis] + 2 * g->padding[axis] - reach;
  return left < 0 ? 0 : left / g->stride[axis] + 1;
}

static int64_t whole_blocks(int64_t channels) {
  return channels <= 4 ? channels : (channels + 15) / 16 * 16;
}

/* Elements of copies of all three. */
static struct shape workspace_shape(const struct geometry *g) {
  const struct shape *images[] = {&g->x, &g->y};
  int64_t workspace = 64;
  for (int i = 0; i < 2; i++)
    workspace += images[i]->dim[0] * whole_blocks(images[i]->dim[1]) * images[i]->dim[2] * images[i]->dim[3];
  int64_t in = g->groups == 1 ? whole_blocks(g->weight.dim[1]) : g->weight.dim[1];
  return shape_of(1, workspace + whole_blocks(g->weight.dim[0]) * in * g->weight.dim[2] * g->weight.dim[3]);
}

/* ---- In cuDNN ---- */

enum { COPIED_CHANNELS = 8, FEW = 8 << 20, PARTS = 32, MOST_PARTS = 96 << 20 };

static int64_t padded(int64_t channels) {
  return (channels + COPIED_CHANNELS - 1) / COPIED_CHANNELS * COPIED_CHANNELS;
}

/* What engines work in, as cuDNN 9.19 reports it for compute capabilities 8.0, 9.0 and 10.0: copies of all three with
 * the channels last, in eights. */
static int64_t copies(const struct geometry *g, enum dtype dtype) {
  const struct shape *images[] = {&g->x, &g->y};
  int64_t elements = padded(g->weight.dim[0]) * padded(g->weight.dim[1]) * g->weight.dim[2] * g->weight.dim[3];
  for (int i = 0; i < 2; i++)
    elements += images[i]->dim[0] * padded(images[i]->dim[1]) * images[i]->dim[2] * images[i]->dim[3];
  return elements * dtype_size(dtype) + FEW;
}

/* And in addition parts of the weight's gradient, the more the smaller it is. */
static int64_t parts(const struct geometry *g) {
  int64_t bytes = PARTS * shape_count(g->weight) * dtype_size(DTYPE_FLOAT32);
  return bytes < MOST_PARTS ? bytes : MOST_PARTS;
}

/* It has all whose result is of the operands' type. */
static bool in_library(const struct node *node) {
  return node->outputs[0]->dtype == node->inputs[0]->dtype;
}

static double matmul_flops(const struct geometry *g) {
  return 2.0 * (double)shape_count(g->y) * (double)shape_product(g->weight, 1, 4);
}

/* ---- Checks ---- */

static bool check_ranks(struct arena *arena, const struct node *node, const char **error) {
  for (int i = 0; i < 2; i++)
    if (node->inputs[i]->shape.rank != 4)
      return op_fail(arena, node, error, "%s must have 4 dimensions", op_operand_text(arena, node, i)) != 0;
  return op_check_same_float(arena, node, 2, error);
}

/* Whether y's shape is what x and the weight give. */
static bool fits(const struct geometry *g) {
  bool fits = g->y.dim[0] == g->x.dim[0] && g->y.dim[1] == g->weight.dim[0];
  fits &= g->x.dim[1] == g->weight.dim[1] * g->groups && g->y.dim[1] % g->groups == 0;
  for (int i = 0; i < 2; i++) fits &= result_extent(g, i) == g->y.dim[2 + i];
  return fits;
}

static int results(const struct node *node, const struct geometry *g, struct shape made, struct shape *shapes,
                   enum dtype *dtypes) {
  shapes[0] = made;
  shapes[1] = workspace_shape(g);
  dtypes[0] = node->inputs[0]->dtype;
  dtypes[1] = DTYPE_FLOAT32;
  return 2;
}

static int refuse(struct arena *arena, const struct node *node, const char **error) {
  return op_fail(arena, node, error, "%s and %s do not fit", op_operand_text(arena, node, 0),
                 op_operand_text(arena, node, 1));
}

/* ---- The sum, in float64 ---- */

/* An element of each of the three that make one term. */
struct term {
  int64_t x, weight, y;
};

/* The terms of one element of y and one channel of the weight. */
static void visit_window(const struct geometry *g, const int64_t at[4], int64_t channel,
                         void (*visit)(double *const *data, struct term term), double *const *data) {
  const int64_t *x = g->x.dim, *w = g->weight.dim, *y = g->y.dim;
  int64_t in = at[1] / (y[1] / g->groups) * w[1] + channel;
  for (int64_t k = 0; k < w[2]; k++)
    for (int64_t l = 0; l < w[3]; l++) {
      int64_t row = at[2] * g->stride[0] - g->padding[0] + k * g->dilation[0];
      int64_t column = at[3] * g->stride[1] - g->padding[1] + l * g->dilation[1];
      if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
      struct term term = {((at[0] * x[1] + in) * x[2] + row) * x[3] + column,
                          ((at[1] * w[1] + channel) * w[2] + k) * w[3] + l,
                          ((at[0] * y[1] + at[1]) * y[2] + at[2]) * y[3] + at[3]};
      visit(data, term);
    }
}

/* data: x, the weight and y. */
static void visit_all(const struct geometry *g, void (*visit)(double *const *data, struct term term),
                      double *const *data) {
  for (int64_t i = 0; i < shape_count(g->y); i++) {
    int64_t at[4], rest = i;
    for (int axis = 3; axis >= 0; axis--) {
      at[axis] = rest % g->y.dim[axis];
      rest /= g->y.dim[axis];
    }
    for (int64_t channel = 0; channel < g->weight.dim[1]; channel++) visit_window(g, at, channel, visit, data);
  }
}

static void clear(double *elements, struct shape shape) {
  for (int64_t i = 0; i < shape_count(shape); i++) elements[i] = 0;
}

/* ---- y of x and the weight ---- */

static struct geometry geometry(const struct node *node) {
  struct shape x = node->inputs[0]->shape, weight = node->inputs[1]->shape, y = x;
  struct geometry g = geometry_of(node, x, weight, y);
  g.y.dim[1] = weight.dim[0];
  for (int i = 0; i < 2; i++) g.y.dim[2 + i] = result_extent(&g, i);
  return g;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!check_ranks(arena, node, error)) return 0;
  struct geometry g = geometry(node);
  if (!fits(&g)) {
    int64_t channels = g.weight.dim[1] * g.groups;
    return op_fail(arena, node, error, "%s must have %lld channels for %s in %lld group%s",
                   op_operand_text(arena, node, 0), (long long)channels, op_operand_text(arena, node, 1),
                   (long long)g.groups, g.groups == 1 ? "" : "s, which divide both");
  }
  if (g.y.dim[2] < 1 || g.y.dim[3] < 1)
    return op_fail(arena, node, error, "%s is wider than %s with its padding", op_operand_text(arena, node, 1),
                   op_operand_text(arena, node, 0));
  return results(node, &g, g.y, shapes, dtypes);
}

static void add_to_y(double *const *data, struct term term) {
  data[2][term.y] += data[0][term.x] * data[1][term.weight];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct geometry g = geometry(node);
  clear(outputs[0], g.y);
  visit_all(&g, add_to_y, (double *const[]){(double *)inputs[0], (double *)inputs[1], outputs[0]});
}

/* A node of one of the three kinds; `extents`, of what it makes, where that does not follow. */
static struct value *convolve(struct builder *builder, const char *kind, struct value *a, struct value *b,
                              const struct node *like, const struct shape *extents) {
  struct attribute attributes[] = {
      attribute_ints("stride", node_ints(like, "stride")), attribute_ints("padding", node_ints(like, "padding")),
      attribute_ints("dilation", node_ints(like, "dilation")), attribute_int("groups", node_int(like, "groups")),
      attribute_ints("extents", extents != NULL ? *extents : (struct shape){0})};
  struct value *inputs[] = {a, b};
  return builder_op(builder, kind, inputs, 2, attributes, extents != NULL ? 5 : 4);
}

static struct shape plane(const struct value *value) {
  return shape_of(2, value->shape.dim[2], value->shape.dim[3]);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *x = node->inputs[0], *weight = node->inputs[1];
  struct shape image = plane(x), kernel = plane(weight);
  if (builder_wants_gradient(builder, x)) dx[0] = convolve(builder, "convolution_data", dy[0], weight, node, &image);
  if (builder_wants_gradient(builder, weight))
    dx[1] = convolve(builder, "convolution_weights", dy[0], x, node, &kernel);
}

/* A window that ends no later than at the newest position, with the positions before it. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  int axis = new->timelines[0].axis;
  if (axis < 2 || !op_is_plain(new->timelines[0]) || new->timelines[1].axis != AXIS_WHOLE) return NULL;
  struct shape padding = node_ints(node, "padding");
  int64_t *padded = &padding.dim[axis - 2];
  int64_t reach = (node->inputs[1]->shape.dim[axis] - 1) * node_ints(node, "dilation").dim[axis - 2];
  int64_t before = new->timelines[0].before + *padded - reach;
  if (before < 0 || node_ints(node, "stride").dim[axis - 2] != 1) return NULL;
  struct value *x = *padded > 0 ? op_conv_cache(builder, new, 0, *padded, NULL) : new->inputs[0];
  new->timeline = (struct timeline){.axis = axis, .before = (int)before};
  *padded = 0;
  struct value *inputs[] = {x, new->inputs[1]};
  struct attribute attributes[MAX_ATTRIBUTES];
  for (int i = 0; i < node->n_attributes; i++) {
    bool pads = strcmp(node->attributes[i].name, "padding") == 0;
    attributes[i] = pads ? attribute_ints("padding", padding) : node->attributes[i];
  }
  return builder_op(builder, "convolution", inputs, 2, attributes, node->n_attributes);
}

static int64_t library_workspace(const struct node *node, bool deterministic) {
  (void)deterministic;
  struct geometry g = geometry(node);
  return copies(&g, node->inputs[0]->dtype);
}

static double flops(const struct node *node) {
  struct geometry g = geometry(node);
  return matmul_flops(&g);
}

static void write_onnx(struct onnx *onnx) {
  const struct shape stride = onnx_ints(onnx, "stride"), padding = onnx_ints(onnx, "padding");
  const struct attribute attributes[] = {
      attribute_ints("strides", stride),
      attribute_ints("pads", shape_of(4, padding.dim[0], padding.dim[1], padding.dim[0], padding.dim[1])),
      attribute_ints("dilations", onnx_ints(onnx, "dilation")), attribute_int("group", onnx_int(onnx, "groups"))};
  const char *inputs[] = {onnx_input(onnx, 0), onnx_input(onnx, 1)};
  onnx_result(onnx, 0, onnx_op(onnx, "Conv", inputs, 2, attributes, 4));
}

/* Of two operands with these dimensions, to a result of this shape, with stride 1 and no padding. */
static struct hlo_convolution lowered(const char *dims, struct shape shape) {
  return (struct hlo_convolution){.dims = dims,
                                  .shape = shape,
                                  .step = {1, 1},
                                  .spread_a = {1, 1},
                                  .spread_b = {1, 1},
                                  .groups = 1,
                                  .batch_groups = 1};
}

static void lower(struct stablehlo *hlo) {
  const struct geometry g = geometry(hlo_node(hlo));
  struct hlo_convolution how = lowered("[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", g.y);
  how.groups = g.groups;
  for (int i = 0; i < 2; i++) {
    how.step[i] = g.stride[i];
    how.before[i] = how.after[i] = g.padding[i];
    how.spread_b[i] = g.dilation[i];
  }
  hlo_result(hlo, 0, hlo_convolve(hlo, hlo_input(hlo, 0), hlo_input(hlo, 1), &how));
}

static const struct op_kind kind = {
    .name = "convolution",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x", "weight"},
    .output_names = {"y", "workspace"},
    .infer = infer,
    .sequence.incremental = incremental,
    .gradient = gradient,
    .memory.accumulates = 1,
    .memory.workspace = 2,
    .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16},
    .cost.flops = flops,
    .library.part = LIBRARY_CONVOLUTION,
    .library.offers = in_library,
    .library.accumulates = true,
    .library.workspace = library_workspace,
    .reference.evaluate = reference,
};

/* ---- x, or its gradient, of y and the weight ---- */

static struct geometry geometry_data(const struct node *node) {
  struct shape y = node->inputs[0]->shape, weight = node->inputs[1]->shape, extents = node_ints(node, "extents");
  struct shape x = shape_of(4, y.dim[0], weight.dim[1] * node_int(node, "groups"), extents.dim[0], extents.dim[1]);
  return geometry_of(node, x, weight, y);
}

static int infer_data(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error) {
  if (!check_ranks(arena, node, error)) return 0;
  struct geometry g = geometry_data(node);
  return fits(&g) ? results(node, &g, g.x, shapes, dtypes) : refuse(arena, node, error);
}

static void add_to_x(double *const *data, struct term term) {
  data[0][term.x] += data[2][term.y] * data[1][term.weight];
}

static void reference_data(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct geometry g = geometry_data(node);
  clear(outputs[0], g.x);
  visit_all(&g, add_to_x, (double *const[]){outputs[0], (double *)inputs[1], (double *)inputs[0]});
}

static void gradient_data(struct builder *builder, const struct node *node, struct value *const *dx,
                          struct value **inputs) {
  struct value *y = node->inputs[0], *weight = node->inputs[1];
  struct shape kernel = plane(weight);
  if (builder_wants_gradient(builder, y)) inputs[0] = convolve(builder, "convolution", dx[0], weight, node, NULL);
  if (builder_wants_gradient(builder, weight))
    inputs[1] = convolve(builder, "convolution_weights", y, dx[0], node, &kernel);
}

static int64_t library_workspace_data(const struct node *node, bool deterministic) {
  (void)deterministic;
  struct geometry g = geometry_data(node);
  return copies(&g, node->inputs[0]->dtype);
}

static double flops_data(const struct node *node) {
  struct geometry g = geometry_data(node);
  return matmul_flops(&g);
}

/* The weight as that of a convolution of y: with the channels of a group exchanged, and turned round. */
static struct hlo lower_turned(struct stablehlo *hlo, struct hlo weight, const struct geometry *g) {
  const int64_t *w = g->weight.dim;
  const struct shape parts = shape_of(5, g->groups, w[0] / g->groups, w[1], w[2], w[3]);
  struct hlo x = hlo_exchange(hlo, hlo_reshape(hlo, weight, parts), 1, 2);
  x = hlo_reshape(hlo, x, shape_of(4, g->x.dim[1], w[0] / g->groups, w[2], w[3]));
  return hlo_reverse(hlo, hlo_reverse(hlo, x, 2), 3);
}

static void lower_data(struct stablehlo *hlo) {
  const struct geometry g = geometry_data(hlo_node(hlo));
  struct hlo_convolution how = lowered("[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", g.x);
  how.groups = g.groups;
  for (int i = 0; i < 2; i++) {
    const int64_t reach = (g.weight.dim[2 + i] - 1) * g.dilation[i];
    how.spread_a[i] = g.stride[i];
    how.spread_b[i] = g.dilation[i];
    how.before[i] = reach - g.padding[i];
    how.after[i] = g.x.dim[2 + i] - 1 - (g.y.dim[2 + i] - 1) * g.stride[i] + g.padding[i];
  }
  hlo_result(hlo, 0, hlo_convolve(hlo, hlo_input(hlo, 0), lower_turned(hlo, hlo_input(hlo, 1), &g), &how));
}

static const struct op_kind kind_data = {
    .name = "convolution_data",
    .lower.write = lower_data,
    .class = OP_KERNEL,
    .template_name = "convolution",
    .input_names = {"dy", "weight"},
    .output_names = {"dx", "workspace"},
    .infer = infer_data,
    .gradient = gradient_data,
    .memory.accumulates = 1,
    .memory.workspace = 2,
    .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16},
    .cost.flops = flops_data,
    .library.part = LIBRARY_CONVOLUTION,
    .library.offers = in_library,
    .library.accumulates = true,
    .library.workspace = library_workspace_data,
    .reference.evaluate = reference_data,
};

/* ---- The weight's gradient of y's and x ---- */

static struct geometry geometry_weights(const struct node *node) {
  struct shape y = node->inputs[0]->shape, x = node->inputs[1]->shape, extents = node_ints(node, "extents");
  struct shape weight = shape_of(4, y.dim[1], x.dim[1] / node_int(node, "groups"), extents.dim[0], extents.dim[1]);
  return geometry_of(node, x, weight, y);
}

static int infer_weights(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                         const char **error) {
  if (!check_ranks(arena, node, error)) return 0;
  struct geometry g = geometry_weights(node);
  return fits(&g) ? results(node, &g, g.weight, shapes, dtypes) : refuse(arena, node, error);
}

static void add_to_weight(double *const *data, struct term term) {
  data[1][term.weight] += data[2][term.y] * data[0][term.x];
}

static void reference_weights(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct geometry g = geometry_weights(node);
  clear(outputs[0], g.weight);
  visit_all(&g, add_to_weight, (double *const[]){(double *)inputs[1], outputs[0], (double *)inputs[0]});
}

static int64_t library_workspace_weights(const struct node *node, bool deterministic) {
  (void)deterministic;
  struct geometry g = geometry_weights(node);
  return copies(&g, node->inputs[0]->dtype) + parts(&g);
}

static double flops_weights(const struct node *node) {
  struct geometry g = geometry_weights(node);
  return matmul_flops(&g);
}

/* Channels of x are the batch, and samples the channels. */
static void lower_weights(struct stablehlo *hlo) {
  const struct geometry g = geometry_weights(hlo_node(hlo));
  struct hlo_convolution how = lowered("[f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]", g.weight);
  how.batch_groups = g.groups;
  for (int i = 0; i < 2; i++) {
    const int64_t seen = (g.weight.dim[2 + i] - 1) * g.dilation[i] + (g.y.dim[2 + i] - 1) * g.stride[i] + 1;
    how.step[i] = g.dilation[i];
    how.spread_b[i] = g.stride[i];
    how.before[i] = g.padding[i];
    how.after[i] = seen - g.x.dim[2 + i] - g.padding[i];
  }
  hlo_result(hlo, 0, hlo_convolve(hlo, hlo_input(hlo, 1), hlo_input(hlo, 0), &how));
}

static const struct op_kind kind_weights = {
    .name = "convolution_weights",
    .lower.write = lower_weights,
    .class = OP_KERNEL,
    .template_name = "convolution",
    .input_names = {"dy", "x"},
    .output_names = {"dweight", "workspace"},
    .infer = infer_weights,
    .memory.accumulates = 1,
    .memory.workspace = 2,
    .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16},
    .cost.flops = flops_weights,
    .library.part = LIBRARY_CONVOLUTION,
    .library.offers = in_library,
    .library.accumulates = true,
    .library.workspace = library_workspace_weights,
    .reference.evaluate = reference_weights,
};

const struct op_file op_file_convolution = {
    .name = "convolution",
    .kinds = (const struct op_kind *const[]){&kind, &kind_data, &kind_weights, NULL},
};
