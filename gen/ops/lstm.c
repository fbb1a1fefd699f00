/* A layer of long short-term memory over T steps from a zero state (Hochreiter, Schmidhuber, Neural Computation 9,
 * 1997, with Gers' forget gate), as torch.nn.LSTM: gates [B][T][4 H] is what x gives to them, weight [4 H][H] what the
 * last step's y does; in the order input, forget, cell, output: i, f, o = s(gates + weight y'), g = tanh(gates + weight
 * y'), c = f c' + i g, y = o tanh(c), s(x) = 1 / (1 + e^-x). The backward goes from the last step to the first, with dc
 * and dy carried; dweight is the sum over batch and steps of dgates y'^T. Under autocast the recurrence stays in
 * float32. */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/lowered.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* The extents of a layer, by its gates. */
struct extents {
  int64_t batch, steps, width;
};

static struct extents extents_of(const struct value *gates) {
  return (struct extents){gates->shape.dim[0], gates->shape.dim[1], gates->shape.dim[2] / 4};
}

/* Workspace for what is carried from step to step, forward and backward. */
static struct shape carried(struct shape gates) {
  return shape_of(3, (int64_t)2, gates.dim[0], gates.dim[2] / 4);
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  for (int i = 0; i < 2; i++)
    if (!op_check_dtype(arena, node, i, DTYPE_FLOAT32, error)) return 0;
  struct shape gates = node->inputs[0]->shape;
  if (gates.rank != 3 || gates.dim[2] % 4 != 0)
    return op_fail(arena, node, error, "%s must be [batch][steps][4 width]", op_operand_text(arena, node, 0));
  int64_t width = gates.dim[2] / 4;
  if (!op_check_shape(arena, node, 1, shape_of(2, 4 * width, width), "four gates of each of the state", error))
    return 0;
  shapes[0] = shapes[1] = op_with_extent(gates, 2, width);
  shapes[2] = gates;
  shapes[3] = carried(gates);
  for (int i = 0; i < 4; i++) dtypes[i] = DTYPE_FLOAT32;
  return 4;
}

static double sigma(double x) {
  return 1 / (1 + exp(-x));
}

/* The gates of one step, from those of x and the state before (NULL: zero). */
static void open_gates(double *active, const double *gates, const double *weight, const double *before, int64_t width) {
  for (int64_t j = 0; j < 4 * width; j++) {
    double sum = gates[j];
    for (int64_t k = 0; before != NULL && k < width; k++) sum += weight[j * width + k] * before[k];
    active[j] = j / width == 2 ? tanh(sum) : sigma(sum);
  }
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct extents n = extents_of(node->inputs[0]);
  int64_t width = n.width;
  for (int64_t r = 0; r < n.batch * n.steps; r++) {
    bool first = r % n.steps == 0;
    double *y = outputs[0] + r * width, *cell = outputs[1] + r * width, *active = outputs[2] + r * 4 * width;
    open_gates(active, inputs[0] + r * 4 * width, inputs[1], first ? NULL : y - width, width);
    for (int64_t k = 0; k < width; k++) {
      cell[k] = active[k] * active[2 * width + k] + (first ? 0 : active[width + k] * cell[k - width]);
      y[k] = active[3 * width + k] * tanh(cell[k]);
    }
  }
}

/* y of the step before each: zeros before the first. */
static struct value *before(struct builder *builder, struct value *y) {
  int64_t steps = y->shape.dim[1];
  if (steps == 1) return op_constant(builder, 0, y->shape);
  return op_pad(builder, op_slice(builder, y, 1, 0, steps - 1), 1, 1, 0);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *weight = node->inputs[1], *y = node->outputs[0];
  struct value *inputs[] = {dy[0], weight, node->outputs[1], node->outputs[2]};
  struct value *dgates = builder_op(builder, "lstm_backward", inputs, 4, NULL, 0);
  if (builder_wants_gradient(builder, node->inputs[0])) dx[0] = dgates;
  if (!builder_wants_gradient(builder, weight)) return;
  int64_t rows = op_rows(y->shape), width = op_columns(y->shape);
  struct value *slopes = op_reshape(builder, dgates, shape_of(2, rows, 4 * width));
  struct value *states = op_reshape(builder, before(builder, y), shape_of(2, rows, width));
  dx[1] = op_matmul(builder, op_matrix_transpose(builder, slopes), states);
}

static double matmul_flops(const struct node *node) {
  struct extents n = extents_of(node->inputs[0]);
  return 8 * (double)(n.batch * n.steps) * (double)(n.width * n.width);
}

/* Of a step: a library wants addresses at multiples of 16 bytes, where each step's rows begin. */
static bool multiplies(struct extents n) {
  return n.width % 4 == 0;
}

static struct op_gemm of_step(const char *name, struct extents n) {
  return (struct op_gemm){name, n.batch, n.width, 4 * n.width, DTYPE_FLOAT32, DTYPE_FLOAT32};
}

/* The steps after the first one. */
static int gemms(const struct node *node, struct op_gemm *found) {
  struct extents n = extents_of(node->inputs[0]);
  if (!multiplies(n) || n.steps == 1) return 0;
  found[0] = of_step("recurrent", n);
  return 1;
}

static double flops(const struct node *node) {
  return matmul_flops(node) + op_flops_each(node, 0, 3);
}

/* y and the cells of the newest step are cached. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  if (!op_is_at(new->timelines[0], 1) || new->timelines[1].axis != AXIS_WHOLE) return NULL;
  struct shape state = carried(node->inputs[0]->shape);
  struct value *inputs[] = {new->inputs[0], new->inputs[1], op_cache(builder, new, "state", state), new->at,
                            new->valid};
  new->timeline = new->timelines[0];
  return builder_op(builder, "lstm_incremental", inputs, new->valid != NULL ? 5 : 4, NULL, 0);
}

/* A loop over the steps, which carries y and c [B][H]. */
static void write_onnx(struct onnx *onnx) {
  const char *gates = onnx_input(onnx, 0), *weight = onnx_exchange(onnx, onnx_input(onnx, 1), 2, 0, 1);
  const int64_t width = onnx_dim(onnx, 0, 2).base / 4;
  const struct onnx_extent extents[] = {onnx_dim(onnx, 0, 0), onnx_fixed(width)};
  const char *zeros = onnx_unary(onnx, "ConstantOfShape", onnx_shape(onnx, extents, 2)), *active[4];
  struct onnx_body body;
  onnx_begin_body(onnx, &body);
  const char *last = onnx_body_input(onnx, &body), *kept = onnx_body_input(onnx, &body);
  const char *own = onnx_body_input(onnx, &body);
  const char *all = onnx_binary(onnx, "Add", own, onnx_binary(onnx, "MatMul", last, weight));
  for (int i = 0; i < 4; i++) {
    const char *part = onnx_slice(onnx, all, 1, onnx_fixed(i * width), onnx_fixed((i + 1) * width));
    active[i] = onnx_unary(onnx, i == 2 ? "Tanh" : "Sigmoid", part);
  }
  const char *fresh = onnx_binary(onnx, "Mul", active[0], active[2]);
  const char *cell = onnx_binary(onnx, "Add", onnx_binary(onnx, "Mul", active[1], kept), fresh);
  const char *y = onnx_binary(onnx, "Mul", active[3], onnx_unary(onnx, "Tanh", cell));
  onnx_body_output(onnx, &body, y);
  onnx_body_output(onnx, &body, cell);
  onnx_body_output(onnx, &body, onnx_unary(onnx, "Identity", y));
  onnx_result(onnx, 0, onnx_scan(onnx, &body, (const char *[]){zeros, zeros, gates}, 3, 2, 3)[2]);
}

/* Gate i of the gates of a step [B][4 H]. */
static struct hlo lower_gate(struct stablehlo *hlo, struct hlo gates, int i) {
  const int64_t width = gates.shape.dim[1] / 4;
  return hlo_slice(hlo, gates, 1, i * width, width);
}

/* Carried: y and c; rows: the gates of x; whole: the weight; kept: y, c and the active gates. */
static void lower_step(struct stablehlo *hlo, struct hlo_step_operands *at) {
  const struct hlo sum = hlo_add(hlo, at->rows[0], hlo_dot(hlo, at->carried[0], at->whole[0], 0, 1, 1));
  struct hlo parts[4];
  for (int i = 0; i < 4; i++) parts[i] = hlo_unary(hlo, i == 2 ? "tanh" : "logistic", lower_gate(hlo, sum, i));
  const struct hlo cell = hlo_add(hlo, hlo_mul(hlo, parts[1], at->carried[1]), hlo_mul(hlo, parts[0], parts[2]));
  at->carried[0] = at->kept[0] = hlo_mul(hlo, parts[3], hlo_unary(hlo, "tanh", cell));
  at->carried[1] = at->kept[1] = cell;
  at->kept[2] = hlo_concat(hlo, parts, 4, 1);
}

/* Of all steps after a y and c: y, c and the active gates of each. */
static struct hlo_loop lower_steps(struct stablehlo *hlo, struct hlo y, struct hlo cell) {
  const struct hlo gates = hlo_input(hlo, 0);
  const struct extents n = extents_of(hlo_node(hlo)->inputs[0]);
  const struct hlo row = {.shape = shape_of(2, n.batch, n.width), .type = HLO_F32};
  const struct hlo all = {.shape = shape_of(2, n.batch, 4 * n.width), .type = HLO_F32};
  struct hlo_loop loop = {.name = "lstm",
                          .steps = n.steps,
                          .axis = 1,
                          .n_carried = 2,
                          .n_sliced = 1,
                          .n_whole = 1,
                          .n_kept = 3,
                          .carried = {y, cell},
                          .sliced = {gates},
                          .whole = {hlo_input(hlo, 1)},
                          .kept = {row, row, all}};
  hlo_run_loop(hlo, &loop, lower_step);
  return loop;
}

static void lower(struct stablehlo *hlo) {
  const struct extents n = extents_of(hlo_node(hlo)->inputs[0]);
  const struct hlo zeros =
      hlo_broadcast(hlo, hlo_table(hlo, &(double){0}, (struct shape){0}, HLO_F32), shape_of(2, n.batch, n.width));
  const struct hlo_loop loop = lower_steps(hlo, zeros, zeros);
  for (int i = 0; i < 3; i++) hlo_result(hlo, i, loop.kept[i]);
}

static const struct op_kind kind = {
    .name = "lstm",
    .lower.write = lower,
    .class = OP_KERNEL,
    .input_names = {"gates", "weight"},
    .output_names = {"y", "cells", "active", "workspace"},
    .infer = infer,
    .memory.workspace = 8,
    .sequence.incremental = incremental,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .types.float32 = FLOAT32_EVERYWHERE,
    .types.wide = true,
    .cost.flops = flops,
    .cost.matmul_flops = matmul_flops,
    .library.gemms = gemms,
    .reference.evaluate = reference,
    .onnx.write = write_onnx,
};

/* ---- Over steps that follow on at[0] earlier ones, whose last y and cells are `cache` ---- */

static int infer_incremental(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                             const char **error) {
  if (infer(arena, node, shapes, dtypes, error) == 0 || !op_check_dtype(arena, node, 2, DTYPE_FLOAT32, error)) return 0;
  if (!op_check_shape(arena, node, 2, shapes[3], "y and cells of a step", error)) return 0;
  shapes[1] = shapes[3];
  return op_check_at(arena, node, 3, error) ? 3 : 0;
}

static void reference_incremental(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct extents n = extents_of(node->inputs[0]);
  int64_t width = n.width, valid = op_valid(node, inputs, 4, n.steps);
  bool first = inputs[3][0] == 0;
  struct arena *arena = arena_new();
  double *cell = arena_alloc(arena, (size_t)width * sizeof *cell);
  for (int64_t r = 0; r < n.batch * n.steps; r++) {
    int64_t b = r / n.steps, t = r % n.steps;
    const double *cache = inputs[2] + b * width, *cached_cell = cache + n.batch * width;
    double *y = outputs[0] + r * width, *active = outputs[2] + r * 4 * width;
    open_gates(active, inputs[0] + r * 4 * width, inputs[1], t > 0 ? y - width : first ? NULL : cache, width);
    for (int64_t k = 0; k < width; k++) {
      double before = t > 0 ? cell[k] : first ? 0 : cached_cell[k];
      cell[k] = active[k] * active[2 * width + k] + active[width + k] * before;
      y[k] = active[3 * width + k] * tanh(cell[k]);
      if (t + 1 != valid) continue;
      outputs[1][b * width + k] = y[k];
      outputs[1][(n.batch + b) * width + k] = cell[k];
    }
  }
  arena_free(arena);
}

/* The GEMM of the first step, from the saved values, and those of the others. */
static int gemms_incremental(const struct node *node, struct op_gemm *found) {
  struct extents n = extents_of(node->inputs[0]);
  int others = gemms(node, found);
  if (!multiplies(n)) return 0;
  found[others] = of_step("first", n);
  return others + 1;
}

static void lower_incremental(struct stablehlo *hlo) {
  const struct extents n = extents_of(hlo_node(hlo)->inputs[0]);
  const struct hlo cache = op_lower_cached(hlo, hlo_input(hlo, 2), 3, hlo_number(0));
  const struct shape row = shape_of(2, n.batch, n.width), state = shape_of(3, (int64_t)1, n.batch, n.width);
  struct hlo before[2], newest[2];
  for (int i = 0; i < 2; i++) before[i] = hlo_reshape(hlo, hlo_slice(hlo, cache, 0, i, 1), row);
  const struct hlo_loop loop = lower_steps(hlo, before[0], before[1]);
  for (int i = 0; i < 2; i++) newest[i] = hlo_reshape(hlo, op_lower_newest(hlo, loop.kept[i], 1, 4), state);
  hlo_result(hlo, 0, loop.kept[0]);
  hlo_result(hlo, 1, hlo_concat(hlo, newest, 2, 0));
  hlo_result(hlo, 2, loop.kept[2]);
}

static const struct op_kind kind_incremental = {
    .name = "lstm_incremental",
    .lower.write = lower_incremental,
    .class = OP_KERNEL,
    .template_name = "lstm",
    .input_names = {"gates", "weight", "cache", "at", "valid"},
    .output_names = {"y", "next", "active"},
    .infer = infer_incremental,
    .memory.workspace = 4,
    .memory.assigns = {0, 3},
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .types.float32 = FLOAT32_EVERYWHERE,
    .types.wide = true,
    .cost.flops = flops,
    .cost.matmul_flops = matmul_flops,
    .library.gemms = gemms_incremental,
    .reference.evaluate = reference_incremental,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!op_check_shape(arena, node, 0, node->inputs[2]->shape, "as y", error)) return 0;
  shapes[0] = node->inputs[3]->shape;
  shapes[1] = carried(shapes[0]);
  dtypes[0] = dtypes[1] = DTYPE_FLOAT32;
  return 2;
}

/* The gradient of one step's gates, from that of its y and of its cell, which becomes that of the cell before. */
static void close_gates(double *dgates, double *dcell, const double *dy, const double *active, const double *cell,
                        bool first, int64_t width) {
  for (int64_t k = 0; k < width; k++) {
    double i = active[k], f = active[width + k], g = active[2 * width + k], o = active[3 * width + k];
    double t = tanh(cell[k]), dc = dcell[k] + dy[k] * o * (1 - t * t);
    dgates[k] = dc * g * i * (1 - i);
    dgates[width + k] = first ? 0 : dc * cell[k - width] * f * (1 - f);
    dgates[2 * width + k] = dc * i * (1 - g * g);
    dgates[3 * width + k] = dy[k] * t * o * (1 - o);
    dcell[k] = dc * f;
  }
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct extents n = extents_of(node->inputs[3]);
  int64_t width = n.width;
  struct arena *arena = arena_new();
  double *dcell = arena_alloc(arena, (size_t)width * sizeof *dcell),
         *dy = arena_alloc(arena, (size_t)width * sizeof *dy);
  for (int64_t r = n.batch * n.steps - 1; r >= 0; r--) {
    bool first = r % n.steps == 0, last = r % n.steps == n.steps - 1;
    for (int64_t k = 0; k < width; k++) {
      dy[k] = inputs[0][r * width + k];
      if (last) dcell[k] = 0;
      for (int64_t j = 0; j < 4 * width && !last; j++)
        dy[k] += inputs[1][j * width + k] * outputs[0][(r + 1) * 4 * width + j];
    }
    close_gates(outputs[0] + r * 4 * width, dcell, dy, inputs[3] + r * 4 * width, inputs[2] + r * width, first, width);
  }
  arena_free(arena);
}

/* The steps before the last one. */
static int gemms_backward(const struct node *node, struct op_gemm *gemms) {
  struct extents n = extents_of(node->inputs[3]);
  if (!multiplies(n) || n.steps == 1) return 0;
  gemms[0] = (struct op_gemm){"recurrent", n.batch, 4 * n.width, n.width, DTYPE_FLOAT32, DTYPE_FLOAT32};
  return 1;
}

static double matmul_flops_backward(const struct node *node) {
  struct extents n = extents_of(node->inputs[3]);
  return 8 * (double)(n.batch * n.steps) * (double)(n.width * n.width);
}

static double flops_backward(const struct node *node) {
  return matmul_flops_backward(node) + op_flops_each(node, 3, 4);
}

/* s (1 - s), 1 - t^2 */
static struct hlo lower_slope(struct stablehlo *hlo, struct hlo s, bool is_tanh) {
  return is_tanh ? hlo_sub(hlo, hlo_number(1), hlo_mul(hlo, s, s)) : hlo_mul(hlo, s, hlo_sub(hlo, hlo_number(1), s));
}

/* Carried: the gradient of the step's y by the step after it, and of its cell; rows: dy, the cells of the step and of
 * the one before, the active gates; whole: the weight; kept: dgates. */
static void lower_step_backward(struct stablehlo *hlo, struct hlo_step_operands *at) {
  struct hlo gate[4], parts[4];
  for (int i = 0; i < 4; i++) gate[i] = lower_gate(hlo, at->rows[3], i);
  const struct hlo dy = hlo_add(hlo, at->rows[0], at->carried[0]), t = hlo_unary(hlo, "tanh", at->rows[1]);
  const struct hlo dc =
      hlo_add(hlo, at->carried[1], hlo_mul(hlo, hlo_mul(hlo, dy, gate[3]), lower_slope(hlo, t, true)));
  const struct hlo by[4] = {hlo_mul(hlo, dc, gate[2]), hlo_mul(hlo, dc, at->rows[2]), hlo_mul(hlo, dc, gate[0]),
                            hlo_mul(hlo, dy, t)};
  for (int i = 0; i < 4; i++) parts[i] = hlo_mul(hlo, by[i], lower_slope(hlo, gate[i], i == 2));
  at->kept[0] = hlo_concat(hlo, parts, 4, 1);
  at->carried[0] = hlo_dot(hlo, at->kept[0], at->whole[0], 0, 1, 0);
  at->carried[1] = hlo_mul(hlo, dc, gate[1]);
}

static void lower_backward(struct stablehlo *hlo) {
  const struct extents n = extents_of(hlo_node(hlo)->inputs[3]);
  const struct hlo cells = hlo_input(hlo, 2), earlier = hlo_pad(hlo, cells, 1, 1, -1, 0);
  const struct hlo zeros =
      hlo_broadcast(hlo, hlo_table(hlo, &(double){0}, (struct shape){0}, HLO_F32), shape_of(2, n.batch, n.width));
  const struct hlo all = {.shape = shape_of(2, n.batch, 4 * n.width), .type = HLO_F32};
  struct hlo_loop loop = {.name = "lstm_backward",
                          .steps = n.steps,
                          .backward = true,
                          .axis = 1,
                          .n_carried = 2,
                          .n_sliced = 4,
                          .n_whole = 1,
                          .n_kept = 1,
                          .carried = {zeros, zeros},
                          .sliced = {hlo_input(hlo, 0), cells, earlier, hlo_input(hlo, 3)},
                          .whole = {hlo_input(hlo, 1)},
                          .kept = {all}};
  hlo_run_loop(hlo, &loop, lower_step_backward);
  hlo_result(hlo, 0, loop.kept[0]);
}

static const struct op_kind kind_backward = {
    .name = "lstm_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .template_name = "lstm",
    .input_names = {"dy", "weight", "cells", "active"},
    .output_names = {"dgates", "workspace"},
    .infer = infer_backward,
    .memory.workspace = 2,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .types.wide = true,
    .cost.flops = flops_backward,
    .cost.matmul_flops = matmul_flops_backward,
    .library.gemms = gemms_backward,
    .reference.evaluate = reference_backward,
};

/* ---- Functions ---- */

static struct value *part(struct builder *builder, const struct scope *scope, const char *what, int64_t layer,
                          struct shape shape, int64_t width) {
  double bound = 1 / sqrt((double)width);
  const char *name = arena_printf(builder_arena(builder), "%s_l%lld", what, (long long)layer);
  return builder_parameter(builder, scope, name, shape, (struct initializer){INIT_UNIFORM, -bound, bound});
}

/* lstm(scope, x, width, layer); all parameters start uniform within 1 / sqrt(width), as torch.nn.LSTM's. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  const struct scope *scope = arguments[0].scope;
  struct value *x = op_tensor(arguments, 1);
  int64_t width = arguments[2].integer, layer = arguments[3].integer;
  if (x == NULL) return NULL;
  if (x->shape.rank != 3 || width < 1) {
    builder_error(builder, "lstm: x %s must be [batch][steps][columns], and the width %lld at least 1",
                  shape_text(builder_arena(builder), x->shape), (long long)width);
    return NULL;
  }
  struct value *of_x = part(builder, scope, "weight_ih", layer, shape_of(2, 4 * width, op_columns(x->shape)), width);
  struct value *of_y = part(builder, scope, "weight_hh", layer, shape_of(2, 4 * width, width), width);
  struct value *bias = op_add(builder, part(builder, scope, "bias_ih", layer, shape_of(1, 4 * width), width),
                              part(builder, scope, "bias_hh", layer, shape_of(1, 4 * width), width));
  struct value *gates = op_add(builder, op_matmul(builder, x, op_matrix_transpose(builder, of_x)), bias);
  return builder_binary(builder, "lstm", gates, of_y);
}

const struct op_file op_file_lstm = {
    .name = "lstm",
    .kinds = (const struct op_kind *const[]){&kind, &kind_incremental, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"lstm", .build = build}, {0}},
};
