/* The selective scan of Mamba (Gu, Dao, arXiv:2312.00752, section 3.2): of u and delta [B][T][D], a [D][N], b and c
 * [B][T][N], each channel d has N states, which begin at zero:
 *   h[n] = e^(delta a[n]) h'[n] + delta b[n] u, y = the sum over n of c[n] h[n].
 * The backward goes from the last step to the first, with dh carried; da comes for each of the batch, to be summed.
 * Under autocast it stays in float32. */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/lowered.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  for (int i = 0; i < 5; i++)
    if (!op_check_dtype(arena, node, i, DTYPE_FLOAT32, error)) return 0;
  struct shape u = node->inputs[0]->shape, a = node->inputs[2]->shape;
  if (u.rank != 3 || a.rank != 2 || a.dim[0] != u.dim[2])
    return op_fail(arena, node, error, "%s must be [batch][steps][channels] and %s [channels][states]",
                   op_operand_text(arena, node, 0), op_operand_text(arena, node, 2));
  if (!op_check_shape(arena, node, 1, u, "one for each of u", error)) return 0;
  struct shape states = op_with_extent(u, 2, a.dim[1]);
  for (int i = 3; i < 5; i++)
    if (!op_check_shape(arena, node, i, states, "one for each state of a step", error)) return 0;
  shapes[0] = u;
  shapes[1] = shape_of(4, u.dim[0], u.dim[1], u.dim[2], a.dim[1]);
  dtypes[0] = dtypes[1] = DTYPE_FLOAT32;
  return 2;
}

/* The index of one channel of one step in the operands: its own number, that of its step, of a's row. */
struct position {
  int64_t own, step, channel;
  bool first;
};

static struct position position_of(int64_t own, struct shape u) {
  int64_t step = own / u.dim[2];
  return (struct position){own, step, own % u.dim[2], step % u.dim[1] == 0};
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  const double *u = inputs[0], *delta = inputs[1], *a = inputs[2], *b = inputs[3], *c = inputs[4];
  struct shape shape = node->inputs[0]->shape;
  int64_t states = node->inputs[2]->shape.dim[1], back = shape.dim[2] * states;
  for (int64_t i = 0; i < shape_count(shape); i++) {
    struct position at = position_of(i, shape);
    double *h = outputs[1] + i * states;
    outputs[0][i] = 0;
    for (int64_t n = 0; n < states; n++) {
      double before = at.first ? 0 : h[n - back];
      h[n] = exp(delta[i] * a[at.channel * states + n]) * before + delta[i] * b[at.step * states + n] * u[i];
      outputs[0][i] += c[at.step * states + n] * h[n];
    }
  }
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[7] = {dy[0]};
  for (int i = 0; i < 5; i++) inputs[i + 1] = node->inputs[i];
  inputs[6] = node->outputs[1];
  struct node *back = builder_node(builder, "selective_scan_backward", inputs, 7, NULL, 0);
  for (int i = 0; i < 5 && back != NULL; i++)
    if (builder_wants_gradient(builder, node->inputs[i]))
      dx[i] = i == 2 ? op_sum(builder, back->outputs[i], shape_of(1, (int64_t)0)) : back->outputs[i];
}

static double flops(const struct node *node) {
  return op_flops_each(node, 0, 8 * (double)node->inputs[2]->shape.dim[1]);
}

/* The states so far are cached. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  for (int i = 0; i < 5; i++)
    if (i == 2 ? new->timelines[i].axis != AXIS_WHOLE : !op_is_at(new->timelines[i], 1)) return NULL;
  struct shape u = new->inputs[0]->shape;
  struct value *inputs[8] = {0};
  for (int i = 0; i < 5; i++) inputs[i] = new->inputs[i];
  inputs[5] = op_cache(builder, new, "states", shape_of(3, u.dim[0], u.dim[2], node->inputs[2]->shape.dim[1]));
  inputs[6] = new->at;
  inputs[7] = new->valid;
  new->timeline = new->timelines[0];
  return builder_op(builder, "selective_scan_incremental", inputs, new->valid != NULL ? 8 : 7, NULL, 0);
}

/* A loop over the steps, which carries the states [B][D][N]. */
static void write_onnx(struct onnx *onnx) {
  const char *u = onnx_input(onnx, 0), *delta = onnx_input(onnx, 1), *a = onnx_input(onnx, 2);
  const char *b = onnx_input(onnx, 3), *c = onnx_input(onnx, 4);
  const struct onnx_extent extents[] = {onnx_dim(onnx, 0, 0), onnx_dim(onnx, 0, 2), onnx_dim(onnx, 2, 1)};
  const struct onnx_extent row = onnx_fixed(1), column = onnx_fixed(2);
  const char *rows = onnx_shape(onnx, &row, 1), *columns = onnx_shape(onnx, &column, 1);
  const char *tensors[] = {onnx_unary(onnx, "ConstantOfShape", onnx_shape(onnx, extents, 3)), u, delta, b, c};
  struct onnx_body body;
  onnx_begin_body(onnx, &body);
  const char *before = onnx_body_input(onnx, &body), *own[4];
  for (int i = 0; i < 4; i++) own[i] = onnx_body_input(onnx, &body);
  const char *each = onnx_binary(onnx, "Unsqueeze", own[1], columns);
  const char *decay = onnx_unary(onnx, "Exp", onnx_binary(onnx, "Mul", each, a));
  const char *added = onnx_binary(onnx, "Unsqueeze", onnx_binary(onnx, "Mul", own[1], own[0]), columns);
  added = onnx_binary(onnx, "Mul", added, onnx_binary(onnx, "Unsqueeze", own[2], rows));
  const char *states = onnx_binary(onnx, "Add", onnx_binary(onnx, "Mul", decay, before), added);
  const char *read = onnx_binary(onnx, "MatMul", states, onnx_binary(onnx, "Unsqueeze", own[3], columns));
  onnx_body_output(onnx, &body, states);
  onnx_body_output(onnx, &body, onnx_binary(onnx, "Squeeze", read, columns));
  onnx_result(onnx, 0, onnx_scan(onnx, &body, tensors, 5, 1, 2)[1]);
}

/* [B][D] as [B][D][1], [B][N] as [B][1][N]. */
static struct hlo lower_channels(struct stablehlo *hlo, struct hlo x) {
  return hlo_reshape(hlo, x, shape_of(3, x.shape.dim[0], x.shape.dim[1], INT64_C(1)));
}

static struct hlo lower_states(struct stablehlo *hlo, struct hlo x) {
  return hlo_reshape(hlo, x, shape_of(3, x.shape.dim[0], INT64_C(1), x.shape.dim[1]));
}

/* e^(delta a) [B][D][N] of a step */
static struct hlo lower_decay(struct stablehlo *hlo, struct hlo delta, struct hlo a) {
  return hlo_unary(hlo, "exponential", hlo_mul(hlo, lower_channels(hlo, delta), a));
}

static struct hlo lower_sum(struct stablehlo *hlo, struct hlo x, int64_t axis) {
  return hlo_reduce(hlo, "add", x, shape_of(1, axis), false);
}

/* Carried: the states; rows: u, delta, b, c; whole: a; kept: y and the states. */
static void lower_step(struct stablehlo *hlo, struct hlo_step_operands *at) {
  const struct hlo *row = at->rows, decay = lower_decay(hlo, row[1], at->whole[0]);
  const struct hlo given = hlo_mul(hlo, lower_channels(hlo, hlo_mul(hlo, row[1], row[0])), lower_states(hlo, row[2]));
  const struct hlo h = hlo_add(hlo, hlo_mul(hlo, decay, at->carried[0]), given);
  at->carried[0] = at->kept[1] = h;
  at->kept[0] = lower_sum(hlo, hlo_mul(hlo, h, lower_states(hlo, row[3])), 2);
}

static struct hlo lower_zeros(struct stablehlo *hlo, struct shape shape) {
  return hlo_broadcast(hlo, hlo_table(hlo, &(double){0}, (struct shape){0}, HLO_F32), shape);
}

/* Of all steps after these states: y and the states of each. */
static struct hlo_loop lower_steps(struct stablehlo *hlo, struct hlo states) {
  const struct hlo u = hlo_input(hlo, 0), a = hlo_input(hlo, 2);
  struct hlo_loop loop = {.name = "selective_scan",
                          .steps = u.shape.dim[1],
                          .axis = 1,
                          .n_carried = 1,
                          .n_sliced = 4,
                          .n_whole = 1,
                          .n_kept = 2,
                          .carried = {states},
                          .sliced = {u, hlo_input(hlo, 1), hlo_input(hlo, 3), hlo_input(hlo, 4)},
                          .whole = {a},
                          .kept = {{.shape = shape_of(2, u.shape.dim[0], u.shape.dim[2]), .type = HLO_F32}, states}};
  hlo_run_loop(hlo, &loop, lower_step);
  return loop;
}

static void lower(struct stablehlo *hlo) {
  const struct shape u = hlo_node(hlo)->inputs[0]->shape, a = hlo_node(hlo)->inputs[2]->shape;
  const struct hlo_loop loop = lower_steps(hlo, lower_zeros(hlo, shape_of(3, u.dim[0], u.dim[2], a.dim[1])));
  for (int i = 0; i < 2; i++) hlo_result(hlo, i, loop.kept[i]);
}

static const struct op_kind kind = {
    .name = "selective_scan",
    .lower.write = lower,
    .class = OP_KERNEL,
    .input_names = {"u", "delta", "a", "b", "c"},
    .output_names = {"y", "states"},
    .infer = infer,
    .sequence.incremental = incremental,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .types.wide = true,
    .cost.flops = flops,
    .reference.evaluate = reference,
    .onnx.write = write_onnx,
};

/* ---- Over steps that follow on at[0] earlier ones, whose states are `cache` [B][D][N] ---- */

static int infer_incremental(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                             const char **error) {
  if (infer(arena, node, shapes, dtypes, error) == 0) return 0;
  struct shape states = shape_of(3, shapes[1].dim[0], shapes[1].dim[2], shapes[1].dim[3]);
  if (!op_check_dtype(arena, node, 5, DTYPE_FLOAT32, error)) return 0;
  if (!op_check_shape(arena, node, 5, states, "the states of each channel", error)) return 0;
  shapes[1] = states;
  return op_check_at(arena, node, 6, error) ? 2 : 0;
}

static void reference_incremental(const struct node *node, const double *const *inputs, double *const *outputs) {
  const double *u = inputs[0], *delta = inputs[1], *a = inputs[2], *b = inputs[3], *c = inputs[4];
  struct shape shape = node->inputs[0]->shape;
  int64_t states = node->inputs[2]->shape.dim[1], valid = op_valid(node, inputs, 7, shape.dim[1]);
  struct arena *arena = arena_new();
  double *running = arena_alloc(arena, (size_t)shape_count(node->inputs[5]->shape) * sizeof *running);
  for (int64_t i = 0; i < shape_count(shape); i++) {
    struct position at = position_of(i, shape);
    int64_t first = (at.step / shape.dim[1] * shape.dim[2] + at.channel) * states;
    double *h = running + first;
    outputs[0][i] = 0;
    for (int64_t n = 0; n < states; n++) {
      double before = !at.first ? h[n] : inputs[6][0] > 0 ? inputs[5][first + n] : 0;
      h[n] = exp(delta[i] * a[at.channel * states + n]) * before + delta[i] * b[at.step * states + n] * u[i];
      outputs[0][i] += c[at.step * states + n] * h[n];
      if (at.step % shape.dim[1] + 1 == valid) outputs[1][first + n] = h[n];
    }
  }
  arena_free(arena);
}

static void lower_incremental(struct stablehlo *hlo) {
  const struct hlo cache = hlo_input(hlo, 5);
  const struct hlo_loop loop = lower_steps(hlo, op_lower_cached(hlo, cache, 6, hlo_number(0)));
  hlo_result(hlo, 0, loop.kept[0]);
  hlo_result(hlo, 1, hlo_reshape(hlo, op_lower_newest(hlo, loop.kept[1], 1, 7), cache.shape));
}

static const struct op_kind kind_incremental = {
    .name = "selective_scan_incremental",
    .lower.write = lower_incremental,
    .class = OP_KERNEL,
    .template_name = "selective_scan",
    .input_names = {"u", "delta", "a", "b", "c", "cache", "at", "valid"},
    .output_names = {"y", "next"},
    .infer = infer_incremental,
    .memory.assigns = {0, 6},
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .types.wide = true,
    .cost.flops = flops,
    .reference.evaluate = reference_incremental,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!op_check_shape(arena, node, 0, node->inputs[1]->shape, "as u", error)) return 0;
  struct shape a = node->inputs[3]->shape;
  for (int i = 0; i < 5; i++) {
    shapes[i] = node->inputs[i + 1]->shape;
    dtypes[i] = DTYPE_FLOAT32;
  }
  shapes[2] = shape_of(3, node->inputs[1]->shape.dim[0], a.dim[0], a.dim[1]);
  return 5;
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  const double *dy = inputs[0], *u = inputs[1], *delta = inputs[2], *a = inputs[3], *b = inputs[4], *c = inputs[5];
  struct shape shape = node->inputs[1]->shape;
  int64_t states = node->inputs[3]->shape.dim[1], back = shape.dim[2] * states;
  struct arena *arena = arena_new();
  double *dh = arena_alloc(arena, (size_t)back * sizeof *dh);
  for (int k = 0; k < 5; k++)
    for (int64_t i = 0; i < shape_count(node->outputs[k]->shape); i++) outputs[k][i] = 0;
  for (int64_t i = shape_count(shape) - 1; i >= 0; i--) {
    struct position at = position_of(i, shape);
    const double *h = inputs[6] + i * states;
    for (int64_t n = 0; n < states; n++) {
      int64_t of_step = at.step * states + n, of_a = at.channel * states + n;
      if ((at.step + 1) % shape.dim[1] == 0) dh[of_a] = 0; /* the last step */
      double decay = exp(delta[i] * a[of_a]), before = at.first ? 0 : h[n - back];
      double g = dh[of_a] + dy[i] * c[of_step];
      outputs[0][i] += g * delta[i] * b[of_step];
      outputs[1][i] += g * (before * decay * a[of_a] + b[of_step] * u[i]);
      outputs[2][at.step / shape.dim[1] * back + of_a] += g * before * decay * delta[i];
      outputs[3][of_step] += g * delta[i] * u[i];
      outputs[4][of_step] += dy[i] * h[n];
      dh[of_a] = g * decay;
    }
  }
  arena_free(arena);
}

static double flops_backward(const struct node *node) {
  return op_flops_each(node, 1, 20 * (double)node->inputs[3]->shape.dim[1]);
}

/* Carried: dh by the step after, and da so far; rows: dy, u, delta, b, c, the states and those of the step before;
 * whole: a; kept: du, ddelta, db, dc. */
static void lower_step_backward(struct stablehlo *hlo, struct hlo_step_operands *at) {
  const struct hlo u = at->rows[1], delta = at->rows[2], b = lower_states(hlo, at->rows[3]), a = at->whole[0];
  const struct hlo dy = lower_channels(hlo, at->rows[0]), each = lower_channels(hlo, delta);
  const struct hlo decay = lower_decay(hlo, delta, a), from = hlo_mul(hlo, at->rows[6], decay);
  const struct hlo g = hlo_add(hlo, at->carried[0], hlo_mul(hlo, dy, lower_states(hlo, at->rows[4])));
  const struct hlo slope = hlo_mul(hlo, g, from);
  at->kept[0] = hlo_mul(hlo, lower_sum(hlo, hlo_mul(hlo, g, b), 2), delta);
  at->kept[1] =
      hlo_add(hlo, lower_sum(hlo, hlo_mul(hlo, slope, a), 2), hlo_mul(hlo, lower_sum(hlo, hlo_mul(hlo, g, b), 2), u));
  at->kept[2] = lower_sum(hlo, hlo_mul(hlo, g, lower_channels(hlo, hlo_mul(hlo, delta, u))), 1);
  at->kept[3] = lower_sum(hlo, hlo_mul(hlo, dy, at->rows[5]), 1);
  at->carried[0] = hlo_mul(hlo, g, decay);
  at->carried[1] = hlo_add(hlo, at->carried[1], hlo_mul(hlo, slope, each));
}

static void lower_backward(struct stablehlo *hlo) {
  struct hlo in[7];
  for (int i = 0; i < 7; i++) in[i] = hlo_input(hlo, i);
  const struct shape u = in[1].shape, one = shape_of(2, u.dim[0], u.dim[2]);
  const int64_t states = in[3].shape.dim[1];
  const struct hlo zeros = lower_zeros(hlo, shape_of(3, u.dim[0], u.dim[2], states));
  const struct hlo channels = {.shape = one, .type = HLO_F32};
  const struct hlo each = {.shape = shape_of(2, u.dim[0], states), .type = HLO_F32};
  struct hlo_loop loop = {.name = "selective_scan_backward",
                          .steps = u.dim[1],
                          .backward = true,
                          .axis = 1,
                          .n_carried = 2,
                          .n_sliced = 7,
                          .n_whole = 1,
                          .n_kept = 4,
                          .carried = {zeros, zeros},
                          .sliced = {in[0], in[1], in[2], in[4], in[5], in[6], hlo_pad(hlo, in[6], 1, 1, -1, 0)},
                          .whole = {in[3]},
                          .kept = {channels, channels, each, each}};
  hlo_run_loop(hlo, &loop, lower_step_backward);
  for (int i = 0; i < 2; i++) hlo_result(hlo, i, loop.kept[i]);
  hlo_result(hlo, 2, loop.carried[1]);
  for (int i = 2; i < 4; i++) hlo_result(hlo, 1 + i, loop.kept[i]);
}

static const struct op_kind kind_backward = {
    .name = "selective_scan_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .input_names = {"dy", "u", "delta", "a", "b", "c", "states"},
    .output_names = {"du", "ddelta", "da", "db", "dc"},
    .infer = infer_backward,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .types.wide = true,
    .cost.flops = flops_backward,
    .reference.evaluate = reference_backward,
};

/* selective_scan(u, delta, a, b, c) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  struct value *inputs[5];
  for (int i = 0; i < count; i++) inputs[i] = op_tensor(arguments, i);
  return builder_op(builder, "selective_scan", inputs, count, NULL, 0);
}

const struct op_file op_file_selective_scan = {
    .name = "selective_scan",
    .kinds = (const struct op_kind *const[]){&kind, &kind_incremental, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"selective_scan", .build = build}, {0}},
};
