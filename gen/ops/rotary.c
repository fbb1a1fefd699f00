/* Rotary position embedding (Su et al., arXiv:2104.09864, eq. 34): with R angles for each position t, the pair (a, b)
 * of angle r becomes (a cos - b sin, b cos + a sin). Pairs are columns r and r + R of the first 2 R, as Llama's and
 * GPT-NeoX's published weights have them, or where `interleaved` 2 r and 2 r + 1, as GPT-J's; the columns after them
 * stay as they are. The gradient is the rotation back: `inverse` negates the sine. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape x = node->inputs[0]->shape, angles = node->inputs[1]->shape;
  if (!op_check_float(arena, node, 0, error)) return 0;
  for (int i = 1; i < 3; i++)
    if (!op_check_dtype(arena, node, i, DTYPE_FLOAT32, error)) return 0;
  if (x.rank != 4)
    return op_fail(arena, node, error, "%s must have 4 dimensions: [batch][heads][positions][columns]",
                   op_operand_text(arena, node, 0));
  if (angles.rank != 2 || angles.dim[0] != x.dim[2] || 2 * angles.dim[1] > x.dim[3])
    return op_fail(arena, node, error, "%s must be [positions][angles] of %s, with at most one angle for two columns",
                   op_operand_text(arena, node, 1), op_operand_text(arena, node, 0));
  if (!op_check_shape(arena, node, 2, angles, "like cos", error)) return 0;
  return op_result(shapes, dtypes, x, node->inputs[0]->dtype);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct shape x = node->inputs[0]->shape;
  int64_t angles = node->inputs[1]->shape.dim[1];
  bool interleaved = node_int(node, "interleaved") != 0;
  double sign = node_int(node, "inverse") ? -1 : 1;
  for (int64_t i = 0; i < shape_count(x); i++) outputs[0][i] = inputs[0][i];
  for (int64_t row = 0; row < op_rows(x); row++)
    for (int64_t r = 0; r < angles; r++) {
      int64_t position = row % x.dim[2], first = row * x.dim[3] + (interleaved ? 2 * r : r);
      int64_t second = first + (interleaved ? 1 : angles);
      double c = inputs[1][position * angles + r], s = sign * inputs[2][position * angles + r];
      double a = inputs[0][first], b = inputs[0][second];
      outputs[0][first] = a * c - b * s;
      outputs[0][second] = b * c + a * s;
    }
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  if (builder_wants_gradient(builder, node->inputs[1]) || builder_wants_gradient(builder, node->inputs[2]))
    builder_error(builder, "rotary: angles cannot be learnt; cos and sin must not depend on a parameter");
  struct value *inputs[] = {dy[0], node->inputs[1], node->inputs[2]};
  struct attribute attributes[] = {attribute_int("interleaved", node_int(node, "interleaved")),
                                   attribute_int("inverse", !node_int(node, "inverse"))};
  dx[0] = builder_op(builder, "rotary", inputs, 3, attributes, 2);
}

/* Rows of x and y may be anywhere; the columns of a row are together. */
static bool accepts(const struct node *node, bool output, int index, const int64_t *strides) {
  struct shape shape = output ? node->outputs[index]->shape : node->inputs[index]->shape;
  if (!output && index > 0) return op_is_dense(shape, strides);
  for (int i = 0; i < 3; i++)
    if (strides[i] < 0) return false;
  return strides[3] == 1 || shape.dim[3] == 1;
}

/* Angles are those of the positions. */
static int along(const struct node *node, int axis, int input) {
  (void)node;
  if (axis == 3) return AXIS_MIXED;
  return input == 0 ? axis : axis == 2 ? 0 : AXIS_WHOLE;
}

/* The part [from, to) of the last dimension. */
static const char *columns(struct onnx *onnx, const char *x, int64_t from, int64_t to) {
  return onnx_slice(onnx, x, -1, onnx_fixed(from), onnx_fixed(to));
}

/* a c - b s, or with `plus` a c + b s. */
static const char *turned(struct onnx *onnx, const char *a, const char *c, const char *b, const char *s, bool plus) {
  const char *first = onnx_binary(onnx, "Mul", a, c);
  return onnx_binary(onnx, plus ? "Add" : "Sub", first, onnx_binary(onnx, "Mul", b, s));
}

/* Both elements of each pair as a tensor each; pairs that are neighbours have an axis of their own. */
static const char *joined(struct onnx *onnx, const char *first, const char *second, bool interleaved, int64_t angles) {
  struct onnx_extent extents[MAX_RANK];
  const struct attribute last = attribute_int("axis", -1);
  for (int i = 0; i < 3; i++) extents[i] = onnx_dim(onnx, 0, i);
  extents[3] = onnx_fixed(2 * angles);
  const char *pairs = onnx_op(onnx, "Concat", (const char *[]){first, second}, 2, &last, 1);
  return interleaved ? onnx_reshape(onnx, pairs, extents, 4) : pairs;
}

static void write_onnx(struct onnx *onnx) {
  const int64_t angles = onnx_dim(onnx, 1, 1).base, width = onnx_dim(onnx, 0, 3).base;
  const bool interleaved = onnx_int(onnx, "interleaved") != 0, inverse = onnx_int(onnx, "inverse") != 0;
  const char *x = columns(onnx, onnx_input(onnx, 0), 0, 2 * angles), *a, *b;
  const char *c = onnx_input(onnx, 1), *s = onnx_input(onnx, 2);
  struct onnx_extent extents[5] = {[3] = onnx_fixed(angles), [4] = onnx_fixed(2)};
  for (int i = 0; i < 3; i++) extents[i] = onnx_dim(onnx, 0, i);
  if (interleaved) {
    const struct onnx_extent column[] = {extents[2], extents[3], onnx_fixed(1)};
    x = onnx_reshape(onnx, x, extents, 5);
    c = onnx_reshape(onnx, c, column, 3);
    s = onnx_reshape(onnx, s, column, 3);
  }
  a = columns(onnx, x, 0, interleaved ? 1 : angles);
  b = columns(onnx, x, interleaved ? 1 : angles, interleaved ? 2 : 2 * angles);
  x = joined(onnx, turned(onnx, a, c, b, s, inverse), turned(onnx, b, c, a, s, !inverse), interleaved, angles);
  const char *parts[] = {x, columns(onnx, onnx_input(onnx, 0), 2 * angles, width)};
  const struct attribute last = attribute_int("axis", -1);
  onnx_result(onnx, 0, 2 * angles < width ? onnx_op(onnx, "Concat", parts, 2, &last, 1) : x);
}

static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const struct hlo x = hlo_input(hlo, 0), cosine = hlo_input(hlo, 1);
  const struct hlo sine = node_int(node, "inverse") ? hlo_unary(hlo, "negate", hlo_input(hlo, 2)) : hlo_input(hlo, 2);
  const bool interleaved = node_int(node, "interleaved") != 0;
  const int64_t angles = cosine.shape.dim[1], columns = x.shape.dim[3];
  struct hlo parts[2] = {hlo_slice(hlo, x, 3, 0, 2 * angles)};
  struct shape pairs = parts[0].shape, column = cosine.shape;
  if (interleaved) {
    pairs.dim[3] = angles;
    pairs.dim[pairs.rank++] = 2;
    column.dim[column.rank++] = 1;
  }
  const int axis = pairs.rank - 1;
  const int64_t half = pairs.dim[axis] / 2;
  const struct hlo rows = hlo_reshape(hlo, parts[0], pairs);
  const struct hlo c = hlo_reshape(hlo, cosine, column), s = hlo_reshape(hlo, sine, column);
  const struct hlo a = hlo_slice(hlo, rows, axis, 0, half), b = hlo_slice(hlo, rows, axis, half, half);
  const struct hlo turned[] = {hlo_sub(hlo, hlo_mul(hlo, a, c), hlo_mul(hlo, b, s)),
                               hlo_add(hlo, hlo_mul(hlo, b, c), hlo_mul(hlo, a, s))};
  const bool all = columns == 2 * angles;
  parts[0] = hlo_reshape(hlo, hlo_concat(hlo, turned, 2, axis), parts[0].shape);
  if (!all) parts[1] = hlo_slice(hlo, x, 3, 2 * angles, columns - 2 * angles);
  hlo_result(hlo, 0, hlo_concat(hlo, parts, all ? 1 : 2, 3));
}

static const struct op_kind kind = {
    .name = "rotary",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x", "cos", "sin"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = along,
    .gradient = gradient,
    .layout.accepts = accepts,
    .cost.flops_each = 3,
    .reference.evaluate = reference,
};

static struct value *rotary(struct builder *builder, const struct argument *arguments, bool interleaved) {
  struct value *inputs[] = {op_tensor(arguments, 0), op_tensor(arguments, 1), op_tensor(arguments, 2)};
  struct attribute attributes[] = {attribute_int("interleaved", interleaved), attribute_int("inverse", 0)};
  return builder_op(builder, "rotary", inputs, 3, attributes, 2);
}

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return rotary(builder, arguments, false);
}

static struct value *build_interleaved(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return rotary(builder, arguments, true);
}

const struct op_file op_file_rotary = {
    .name = "rotary",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"rotary", .build = build},
                                              {"rotary_interleaved", .build = build_interleaved},
                                              {0}},
};
