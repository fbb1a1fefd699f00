/* Products of matrices in 8 bits with a scale for each group of numbers that are added up: a row's, or a block of it
 * (docs/precision.md). A scale is a power of two, so that the rounded number times it is a float, or from 2^-133 on a
 * bfloat16, exactly: fp8_round gives these, and any product of them is the one that a device divides by the scales
 * afterwards.
 *
 * Each of the three products of a layer adds up over another dimension, and so rounds its factors on its own: y over
 * columns of x, dx over columns of dy, dW over rows of both (torchao's rowwise recipes; its MXLinear, and the OCP
 * Microscaling Formats specification 1.0).
 *
 * fp8_group_matmul has no kernel: gen/plan/graph/fp8.c makes it other nodes once its gradient is there. */
#include <math.h>

#include "gen/ops/support/support.h"

enum { A, B };
enum { E4M3_MOST = 448, E4M3_LARGEST_POWER = 8, E8M0_LEAST = -127, E8M0_MOST = 127 };

static enum dtype stored(const struct node *node) {
  return node_int(node, "bf16") != 0 ? DTYPE_BFLOAT16 : DTYPE_FLOAT32;
}

/* ---- Rounding ---- */

static int infer_round(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                       const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  if (op_columns(node->inputs[0]->shape) % node_int(node, "group") != 0)
    return op_fail(arena, node, error, "%s has no whole groups", op_operand_text(arena, node, 0));
  return op_result(shapes, dtypes, node->inputs[0]->shape, stored(node));
}

/* The power of two that the rounded numbers of a group are to be multiplied with. */
static int power_of(enum op_fp8_scaling scaling, double largest) {
  int power = 0;
  if (scaling == FP8_SCALE_FLOOR) { /* the specification's: the largest power of two in it, over that of E4M3 */
    frexp(largest, &power);
    power = largest > 0 ? power - 1 - E4M3_LARGEST_POWER : E8M0_LEAST;
  } else if (scaling == FP8_SCALE_CEILING) { /* cuBLAS's: the least that brings it within E4M3 */
    const float ratio = (float)(largest / E4M3_MOST);
    const double fraction = frexp(ratio, &power);
    power = ratio > 0 ? power - (fraction == 0.5) : E8M0_LEAST;
  } else { /* torchao's: the largest factor that does */
    const float factor = (float)(E4M3_MOST / fmax(largest, 1e-12));
    frexp(factor, &power);
    power = 1 - power;
  }
  return power < E8M0_LEAST ? E8M0_LEAST : power > E8M0_MOST ? E8M0_MOST : power;
}

/* Numbers of a group, with a stride of `step`. */
static int power_of_group(const struct node *node, const double *x, int64_t count, int64_t step) {
  double largest = 0;
  for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(x[i * step]));
  return power_of((enum op_fp8_scaling)node_int(node, "scaling"), largest);
}

static double rounded_by(double x, int power) {
  return ldexp(op_round_fp8(ldexp(x, -power), false), power);
}

static void reference_round(const struct node *node, const double *const *inputs, double *const *outputs) {
  const int64_t group = node_int(node, "group"), count = shape_count(node->inputs[0]->shape);
  for (int64_t first = 0; first < count; first += group) {
    const int power = power_of_group(node, inputs[0] + first, group, 1);
    for (int64_t i = first; i < first + group; i++) outputs[0][i] = rounded_by(inputs[0][i], power);
  }
}

static void pass_gradient(struct builder *builder, const struct node *node, struct value *const *dy,
                          struct value **dx) {
  if (builder_wants_gradient(builder, node->inputs[0])) dx[0] = dy[0];
}

const struct op_kind op_fp8_round = {
    .name = "fp8_round",
    .class = OP_KERNEL,
    .template_name = "fp8_groups",
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer_round,
    .gradient = pass_gradient,
    .cost.flops_each = 5,
    .reference.evaluate = reference_round,
};

/* ---- Products ---- */

static struct value *rounded(struct builder *builder, const struct node *of, struct value *x) {
  const int64_t block = node_int(of, "block");
  const struct attribute attributes[] = {attribute_int("bf16", node_int(of, "bf16")),
                                         attribute_int("group", block > 0 ? block : op_columns(x->shape)),
                                         attribute_int("scaling", node_int(of, "scaling"))};
  return builder_op(builder, "fp8_round", &x, 1, attributes, 3);
}

/* With one scale. */
static struct value *rounded_whole(struct builder *builder, const struct node *of, struct value *x) {
  const struct shape shape = x->shape;
  return op_reshape(builder, rounded(builder, of, op_reshape(builder, x, shape_of(2, INT64_C(1), shape_count(shape)))),
                    shape);
}

static struct value *as_matrix(struct builder *builder, struct value *x) {
  return op_reshape(builder, x, shape_of(2, op_rows(x->shape), op_columns(x->shape)));
}

/* b, which is to be multiplied from the left, rounded along its rows. */
static struct value *rounded_along_rows(struct builder *builder, const struct node *of, struct value *b) {
  return op_matrix_transpose(builder, rounded(builder, of, op_matrix_transpose(builder, b)));
}

static int infer_matmul(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                        const char **error) {
  const struct shape a = node->inputs[A]->shape, b = node->inputs[B]->shape;
  if (!op_check_float(arena, node, A, error) || !op_check_float(arena, node, B, error)) return 0;
  if (b.rank != 2 || a.rank < 2 || op_columns(a) != b.dim[0])
    return op_fail(arena, node, error, "%s has not the columns that b has rows", op_operand_text(arena, node, A));
  return op_result(shapes, dtypes, op_with_extent(a, a.rank - 1, b.dim[1]), stored(node));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *a = node->inputs[A], *b = node->inputs[B];
  const bool wide = node_int(node, "wide_weight_gradient") != 0;
  if (builder_wants_gradient(builder, a)) {
    struct value *y = rounded(builder, node, dy[0]);
    struct value *weight = wide ? rounded_whole(builder, node, b) : rounded(builder, node, b);
    dx[A] = op_matmul(builder, y, op_matrix_transpose(builder, weight));
  }
  if (builder_wants_gradient(builder, b)) {
    struct value *x = op_matrix_transpose(builder, as_matrix(builder, a)), *y = as_matrix(builder, dy[0]);
    if (!wide) {
      x = rounded(builder, node, x);
      y = rounded_along_rows(builder, node, y);
    }
    dx[B] = op_matmul(builder, x, y);
  }
}

struct value *op_fp8_group_matmul_with(struct builder *builder, struct value *a, struct value *b,
                                       struct op_fp8_groups how) {
  struct value *const inputs[] = {a, b};
  const struct attribute attributes[] = {attribute_int("bf16", how.bf16), attribute_int("block", how.block),
                                         attribute_int("scaling", how.scaling),
                                         attribute_int("wide_weight_gradient", how.wide_weight_gradient)};
  return builder_op(builder, "fp8_group_matmul", inputs, 2, attributes, 4);
}

struct value *op_fp8_group_product(struct builder *builder, const struct node *node) {
  struct value *a = rounded(builder, node, node->inputs[A]);
  return op_matmul(builder, a, rounded_along_rows(builder, node, node->inputs[B]));
}

static double reference_sum(const struct node *node, const double *a, const double *b) {
  const struct shape shape = node->inputs[B]->shape;
  const int64_t depth = shape.dim[0], columns = shape.dim[1], block = node_int(node, "block");
  const int64_t group = block > 0 ? block : depth;
  double sum = 0;
  for (int64_t first = 0; first < depth; first += group) {
    const int of_a = power_of_group(node, a + first, group, 1);
    const int of_b = power_of_group(node, b + first * columns, group, columns);
    for (int64_t k = first; k < first + group; k++) sum += rounded_by(a[k], of_a) * rounded_by(b[k * columns], of_b);
  }
  return sum;
}

static void reference_matmul(const struct node *node, const double *const *inputs, double *const *outputs) {
  const int64_t depth = node->inputs[B]->shape.dim[0], columns = node->inputs[B]->shape.dim[1];
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++)
    outputs[0][i] = reference_sum(node, inputs[A] + i / columns * depth, inputs[B] + i % columns);
}

const struct op_kind op_fp8_group_matmul = {
    .name = "fp8_group_matmul",
    .class = OP_KERNEL,
    .input_names = {"a", "b"},
    .output_names = {"y"},
    .infer = infer_matmul,
    .gradient = gradient,
    .ranks.place = op_fp8_place_rows,
    .cost.flops = op_fp8_flops,
    .cost.matmul_flops = op_fp8_flops,
    .reference.evaluate = reference_matmul,
};

const struct op_file op_file_fp8_groups = {
    .name = "fp8_groups",
    .kinds = (const struct op_kind *const[]){&op_fp8_round, &op_fp8_group_matmul, NULL},
};
