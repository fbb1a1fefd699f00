/* Products of matrices in 8 bits (docs/precision.md). The factors are rounded to numbers of E4M3 or E5M2 times a scale
 * for each tensor, and stay floats or bfloat16, which have all these numbers; the product of them is in float32, and
 * then divided by both scales.
 *
 * fp8_quantize scales by the tensor's own largest size (torchao's tensorwise recipe). fp8_quantize_delayed has a scale
 * of tensors before it, and leaves its own largest size at the start of their history (Transformer Engine's
 * DelayedScaling), from which the program makes the next scale when a batch is over. The gradient of a product is of
 * the tensors that were rounded, so the gradient of rounding passes it through.
 *
 * fp8_matmul has no kernel: gen/plan/graph/fp8.c makes it other nodes once its gradient is there. */
#include <math.h>

#include "gen/ops/support/support.h"

enum { X, SCALE, HISTORY }; /* inputs of fp8_quantize */
enum { Q, INVERSE, NEXT_HISTORY };
enum { A, B, A_INVERSE, B_INVERSE, GRAD_SCALE, GRAD_HISTORY, WIDE_A }; /* of fp8_matmul; WIDE_A: a before rounding */

static const struct shape one_number = {.rank = 1, .dim = {1}};

static enum dtype stored(const struct node *node) {
  return node_int(node, "bf16") != 0 ? DTYPE_BFLOAT16 : DTYPE_FLOAT32;
}

/* ---- Rounding ---- */

static int infer_quantize(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!op_check_float(arena, node, X, error)) return 0;
  shapes[Q] = node->inputs[X]->shape;
  dtypes[Q] = stored(node);
  shapes[INVERSE] = one_number;
  dtypes[INVERSE] = DTYPE_FLOAT32;
  return 2;
}

static int infer_delayed(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                         const char **error) {
  if (!op_check_shape(arena, node, SCALE, one_number, "one scale", error) ||
      !op_check_rank(arena, node, HISTORY, 1, error) || infer_quantize(arena, node, shapes, dtypes, error) == 0)
    return 0;
  shapes[NEXT_HISTORY] = node->inputs[HISTORY]->shape;
  dtypes[NEXT_HISTORY] = DTYPE_FLOAT32;
  return 3;
}

static void pass_gradient(struct builder *builder, const struct node *node, struct value *const *dy,
                          struct value **dx) {
  if (builder_wants_gradient(builder, node->inputs[X])) dx[X] = dy[Q];
}

/* Each element alone; all ranks have the scale and the history of the whole tensor. */
static int along(const struct node *node, int axis, int input) {
  (void)node;
  return input == X ? axis : AXIS_WHOLE;
}

static bool place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  (void)ranks;
  return (seed == X || seed == node->n_inputs) && op_place_along(node, seed, placements);
}

/* Each rank has the scale of its own part. */
static bool place_at_hand(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  (void)ranks;
  placements[X] = placements[node->n_inputs] = placements[seed];
  return placements[seed].form == PLACED_SPLIT;
}

static bool is_evaluated(const struct node *node) {
  return node_int(node, "evaluates") != 0;
}

/* In evaluation what was scaled by the history stays as it is, unless that is in 8 bits, too. */
static struct value *as_it_is(struct builder *builder, const struct node *node) {
  if (is_evaluated(node)) return node->outputs[Q];
  return builder_cast(builder, node->inputs[X], stored(node));
}

/* ---- The float64 reference of rounding ---- */

static double most_number(bool e5m2) {
  return e5m2 ? 57344 : 448;
}

double op_round_fp8(double x, bool e5m2) {
  const double most = most_number(e5m2), size = fabs(x);
  if (isnan(x)) return x;
  if (size >= most) return copysign(most, x);
  int exponent = 0;
  frexp(size, &exponent);
  const int lowest = e5m2 ? -13 : -5, bits = e5m2 ? 3 : 4; /* of size in [1/2, 1) 2^exponent */
  const int place = (exponent > lowest ? exponent : lowest) - bits;
  return copysign(ldexp(nearbyint(ldexp(size, -place)), place), x);
}

static double largest_of(const struct value *x, const double *elements) {
  double largest = 0;
  for (int64_t i = 0; i < shape_count(x->shape); i++) largest = fmax(largest, fabs(elements[i]));
  return largest;
}

static void round_all(const struct node *node, const double *x, double scale, double *const *outputs) {
  for (int64_t i = 0; i < shape_count(node->inputs[X]->shape); i++)
    outputs[Q][i] = op_round_fp8((float)(x[i] * scale), node_int(node, "e5m2") != 0);
  outputs[INVERSE][0] = 1 / scale;
}

/* The scale of a tensor whose largest size this is; a power of two is no larger than the quotient. */
static double scale_of(const struct node *node, double largest) {
  const double most = most_number(node_int(node, "e5m2") != 0);
  int exponent = 0;
  if (node_int(node, "powers") == 0) return (float)(most / fmax(largest, 1e-12));
  if (largest <= 0 || !isfinite(largest)) return 1;
  frexp((float)most / (float)largest, &exponent);
  return ldexp(1, exponent - 1);
}

static void reference_quantize(const struct node *node, const double *const *inputs, double *const *outputs) {
  round_all(node, inputs[X], scale_of(node, largest_of(node->inputs[X], inputs[X])), outputs);
}

static void reference_delayed(const struct node *node, const double *const *inputs, double *const *outputs) {
  const int64_t length = node->inputs[HISTORY]->shape.dim[0];
  for (int64_t i = 0; i < length; i++) outputs[NEXT_HISTORY][i] = inputs[HISTORY][i];
  const double largest = largest_of(node->inputs[X], inputs[X]);
  const bool at_hand = node_int(node, "powers") != 0 && inputs[SCALE][0] <= 0;
  outputs[NEXT_HISTORY][0] = at_hand ? largest : fmax(inputs[HISTORY][0], largest);
  round_all(node, inputs[X], at_hand ? scale_of(node, largest) : inputs[SCALE][0], outputs);
}

enum { OF_PRODUCT = 2, OF_TENSOR, OF_DELAYED }; /* attributes */

struct attributes {
  struct attribute items[OF_DELAYED];
};

static struct attributes attributes_of(struct op_fp8 how) {
  return (struct attributes){{attribute_int("bf16", how.bf16), attribute_int("e5m2", how.e5m2),
                              attribute_int("powers", how.powers), attribute_int("evaluates", how.evaluates)}};
}

struct node *op_fp8_quantize_with(struct builder *builder, struct value *x, struct value *scale, struct value *history,
                                  struct op_fp8 how) {
  struct value *const inputs[] = {x, scale, history};
  const struct attributes attributes = attributes_of(how);
  if (scale == NULL) return builder_node(builder, "fp8_quantize", inputs, 1, attributes.items, OF_TENSOR);
  return builder_node(builder, "fp8_quantize_delayed", inputs, 3, attributes.items, OF_DELAYED);
}

const struct op_kind op_fp8_quantize = {
    .name = "fp8_quantize",
    .class = OP_KERNEL,
    .template_name = "fp8",
    .input_names = {"x"},
    .output_names = {"q", "inverse"},
    .infer = infer_quantize,
    .gradient = pass_gradient,
    .ranks.place = place_at_hand,
    .ranks.others_whole = true,
    .cost.flops_each = 4,
    .reference.evaluate = reference_quantize,
};

const struct op_kind op_fp8_quantize_delayed = {
    .name = "fp8_quantize_delayed",
    .class = OP_KERNEL,
    .template_name = "fp8",
    .input_names = {"x", "scale", "history"},
    .output_names = {"q", "inverse", "next_history"},
    .infer = infer_delayed,
    .gradient = pass_gradient,
    .sequence.along = along,
    .ranks.place = place,
    .ranks.others_whole = true,
    .memory.assigns = {0, 0, 1 + HISTORY},
    .evaluation.substitute = as_it_is,
    .cost.flops_each = 4,
    .reference.evaluate = reference_delayed,
};

/* ---- Products ---- */

static int infer_matmul(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                        const char **error) {
  const struct shape a = node->inputs[A]->shape, b = node->inputs[B]->shape;
  if (!op_check_same_float(arena, node, 2, error) || !op_check_rank(arena, node, A, 2, error)) return 0;
  if (b.rank != 2 || op_columns(a) != b.dim[0])
    return op_fail(arena, node, error, "%s has not the columns that b has rows", op_operand_text(arena, node, A));
  return op_result(shapes, dtypes, op_with_extent(a, a.rank - 1, b.dim[1]), stored(node));
}

static struct value *as_matrix(struct builder *builder, struct value *x) {
  return op_reshape(builder, x, shape_of(2, op_rows(x->shape), op_columns(x->shape)));
}

struct value *op_fp8_product(struct builder *builder, struct value *const factors[4], struct value *grad_scale,
                             struct value *grad_history, struct value *wide_a, struct op_fp8 how) {
  struct value *inputs[] = {factors[A],   factors[B], factors[A_INVERSE], factors[B_INVERSE], grad_scale,
                            grad_history, wide_a};
  const struct attributes attributes = attributes_of(how);
  if (grad_scale == NULL) return builder_op(builder, "fp8_matmul", inputs, GRAD_SCALE, attributes.items, OF_PRODUCT);
  return builder_op(builder, "fp8_matmul_delayed", inputs, wide_a != NULL ? 7 : 6, attributes.items, OF_DELAYED);
}

/* The gradient of y rounded, as the forward's factors were. */
static const struct node *quantize_gradient(struct builder *builder, const struct node *node, struct value *dy) {
  const bool delayed = node->n_inputs > GRAD_SCALE;
  const struct op_fp8 how = {.bf16 = node_int(node, "bf16") != 0,
                             .e5m2 = node_int(node, "e5m2") != 0,
                             .powers = delayed && node_int(node, "powers") != 0};
  struct value *scale = delayed ? node->inputs[GRAD_SCALE] : NULL;
  struct value *history = delayed ? node->inputs[GRAD_HISTORY] : NULL;
  return op_fp8_quantize_with(builder, dy, scale, history, how);
}

static struct value *product(struct builder *builder, const struct node *of, struct value *a, struct value *b,
                             struct value *a_inverse, struct value *b_inverse) {
  struct value *const factors[] = {a, b, a_inverse, b_inverse};
  return op_fp8_product(builder, factors, NULL, NULL, NULL, (struct op_fp8){.bf16 = node_int(of, "bf16") != 0});
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *a = node->inputs[A], *b = node->inputs[B];
  const struct node *rounded_dy = quantize_gradient(builder, node, dy[0]);
  if (rounded_dy == NULL) return;
  struct value *q = rounded_dy->outputs[Q], *inverse = rounded_dy->outputs[INVERSE];
  if (builder_wants_gradient(builder, a))
    dx[A] = product(builder, node, q, op_matrix_transpose(builder, b), inverse, node->inputs[B_INVERSE]);
  if (builder_wants_gradient(builder, b) && node->n_inputs > WIDE_A)
    dx[B] = op_matmul(builder, op_matrix_transpose(builder, as_matrix(builder, node->inputs[WIDE_A])),
                      as_matrix(builder, dy[0]));
  else if (builder_wants_gradient(builder, b))
    dx[B] = product(builder, node, op_matrix_transpose(builder, as_matrix(builder, a)), as_matrix(builder, q),
                    node->inputs[A_INVERSE], inverse);
}

static void reference_matmul(const struct node *node, const double *const *inputs, double *const *outputs) {
  const int64_t depth = node->inputs[B]->shape.dim[0], columns = node->inputs[B]->shape.dim[1];
  for (int64_t r = 0; r < op_rows(node->inputs[A]->shape); r++)
    for (int64_t c = 0; c < columns; c++) {
      double sum = 0;
      for (int64_t k = 0; k < depth; k++) sum += inputs[A][r * depth + k] * inputs[B][k * columns + c];
      outputs[0][r * columns + c] = sum * inputs[A_INVERSE][0] * inputs[B_INVERSE][0];
    }
}

double op_fp8_flops(const struct node *node) {
  return 2 * (double)shape_count(node->outputs[0]->shape) * (double)node->inputs[B]->shape.dim[0];
}

bool op_fp8_place_rows(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const int last = op_operand(node, seed)->shape.rank - 1;
  if ((seed != A && seed != node->n_inputs) || placements[seed].dim == last) return false;
  return op_place_product(node, seed, ranks, placements);
}

/* The parts that ranks try are of the depth, as of a matmul by a parameter. */
static bool tried(const struct node *node, int *input, int *dim) {
  *input = A;
  *dim = node->inputs[A]->shape.rank - 1;
  return true;
}

/* What a was before rounding is divided as it is. */
static int along_product(const struct node *node, int axis, int input) {
  return op_along_product(node, axis, input == WIDE_A ? A : input);
}

static bool place_product(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const int as = seed == WIDE_A && node->n_inputs > WIDE_A ? A : seed;
  if (as != seed) placements[as] = placements[seed];
  if (!op_place_product(node, as, ranks, placements)) return false;
  if (node->n_inputs > WIDE_A) placements[WIDE_A] = placements[A];
  return true;
}

/* With factors as they are. */
static struct value *plain_product(struct builder *builder, const struct node *node) {
  if (is_evaluated(node)) return node->outputs[0];
  return op_matmul(builder, node->inputs[A], node->inputs[B]);
}

const struct op_kind op_fp8_matmul = {
    .name = "fp8_matmul",
    .class = OP_KERNEL,
    .input_names = {"a", "b", "a_inverse", "b_inverse"},
    .output_names = {"y"},
    .infer = infer_matmul,
    .gradient = gradient,
    .ranks.place = op_fp8_place_rows,
    .cost.flops = op_fp8_flops,
    .cost.matmul_flops = op_fp8_flops,
    .reference.evaluate = reference_matmul,
};

const struct op_kind op_fp8_matmul_delayed = {
    .name = "fp8_matmul_delayed",
    .class = OP_KERNEL,
    .input_names = {"a", "b", "a_inverse", "b_inverse", "grad_scale", "grad_history", "wide_a"},
    .output_names = {"y"},
    .infer = infer_matmul,
    .gradient = gradient,
    .sequence.along = along_product,
    .ranks.place = place_product,
    .ranks.tried = tried,
    .evaluation.substitute = plain_product,
    .cost.flops = op_fp8_flops,
    .cost.matmul_flops = op_fp8_flops,
    .reference.evaluate = reference_matmul,
};

const struct op_file op_file_fp8 = {
    .name = "fp8",
    .kinds = (const struct op_kind *const[]){&op_fp8_quantize, &op_fp8_quantize_delayed, &op_fp8_matmul,
                                             &op_fp8_matmul_delayed, NULL},
};
