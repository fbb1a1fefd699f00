/* y = x W^T, x [..., in], as LLM.int8() multiplies (Dettmers, Lewis, Belkada, Zettlemoyer, arXiv:2208.07339) in the
 * form of bitsandbytes' Linear8bitLt: by a matrix W [out][in] of int8 and a scale for each of its rows, and by x in
 * int8 with scales for its rows. Columns of x in which a number has at least the size `threshold` are multiplied as
 * they are (include/accel/int8_gemm.h). With `valid` [1] the rows of x from there on are of no text, and make no column
 * one of these. y has the type of x. It is what a model is evaluated by, and has no gradient. */
#include <math.h>

#include "gen/ops/support/quantized.h"
#include "gen/ops/support/support.h"

enum { X, CODES, SCALES, VALID };
enum { Y, ROW_CODES, ROW_SCALES, OUTLIERS }; /* all but y are workspace */

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  const int64_t out = node_int(node, "out"), in = node_int(node, "in");
  if (!op_check_float(arena, node, X, error) || !op_check_rank(arena, node, X, 2, error) ||
      !op_check_dtype(arena, node, CODES, DTYPE_INT8, error) ||
      !op_check_dtype(arena, node, SCALES, DTYPE_FLOAT32, error) ||
      !op_check_shape(arena, node, CODES, shape_of(2, out, in), "the codes", error) ||
      !op_check_shape(arena, node, SCALES, shape_of(1, out), "the scales of the codes", error))
    return 0;
  if (node->n_inputs > VALID && !op_check_at(arena, node, VALID, error)) return 0;
  const struct shape x = node->inputs[X]->shape;
  if (op_columns(x) != in)
    return op_fail(arena, node, error, "%s must have %lld columns", op_operand_text(arena, node, X), (long long)in);
  op_result(shapes, dtypes, op_with_extent(x, x.rank - 1, out), node->inputs[X]->dtype);
  shapes[ROW_CODES] = x;
  dtypes[ROW_CODES] = DTYPE_INT8;
  shapes[ROW_SCALES] = shape_of(1, op_rows(x));
  dtypes[ROW_SCALES] = DTYPE_FLOAT32;
  shapes[OUTLIERS] = shape_of(1, in + 1);
  dtypes[OUTLIERS] = DTYPE_INT32;
  return 4;
}

/* Over new positions the same, but that those which are none of the text have no effect on the others. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  const struct shape shape = new->inputs[X]->shape;
  struct value *inputs[] = {new->inputs[X], new->inputs[CODES], new->inputs[SCALES], new->valid};
  if (!op_is_at(new->timelines[X], shape.rank - 2) || shape_product(shape, 0, shape.rank - 2) != 1) return NULL;
  new->timeline = new->timelines[X];
  return builder_op(builder, "llm_int8_matmul", inputs, new->valid != NULL ? 4 : 3, node->attributes,
                    node->n_attributes);
}

/* ---- The float64 reference ---- */

static bool is_outlier(const struct node *node, double x) {
  const double threshold = node_real(node, "threshold");
  return threshold > 0 && fabs(op_float16(x)) >= op_float16(threshold);
}

/* Whether a column of x has an outlier in some row. */
static bool has_outlier(const struct node *node, const double *const *inputs, int64_t column) {
  const int64_t rows = op_rows(node->inputs[X]->shape), in = op_columns(node->inputs[X]->shape);
  for (int64_t r = 0; r < op_valid(node, inputs, VALID, rows); r++)
    if (is_outlier(node, inputs[X][r * in + column])) return true;
  return false;
}

static double largest_of(const struct node *node, const double *row, int64_t in) {
  double most = 0;
  for (int64_t i = 0; i < in; i++)
    if (!is_outlier(node, row[i])) most = fmax(most, fabs(op_float16(row[i])));
  return most;
}

static double code_of(double x, double scale) {
  return scale > 0 ? nearbyintf((float)op_float16(x) * (1 / (float)scale * 127)) : 0;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  const int64_t rows = op_rows(node->inputs[X]->shape), out = node_int(node, "out"), in = node_int(node, "in");
  for (int64_t i = 0; i < rows * out; i++) outputs[Y][i] = 0;
  for (int64_t i = 0; i < in; i++) {
    const bool exact = has_outlier(node, inputs, i);
    for (int64_t r = 0; r < rows; r++) {
      const double x = inputs[X][r * in + i], scale = largest_of(node, inputs[X] + r * in, in);
      const double factor = exact ? x : code_of(x, scale) * scale / 127;
      for (int64_t o = 0; o < out; o++)
        outputs[Y][r * out + o] += factor * inputs[CODES][o * in + i] * inputs[SCALES][o] / 127;
    }
  }
}

static double flops(const struct node *node) {
  return 2 * (double)op_rows(node->inputs[X]->shape) * (double)node_int(node, "out") * (double)node_int(node, "in");
}

static const struct op_kind kind = {
    .name = "llm_int8_matmul",
    .class = OP_KERNEL,
    .input_names = {"x", "codes", "scales", "valid"},
    .output_names = {"y", "row_codes", "row_scales", "outliers"},
    .infer = infer,
    .sequence.incremental = incremental,
    .memory.workspace = 1 << ROW_CODES | 1 << ROW_SCALES | 1 << OUTLIERS,
    .cost.flops = flops,
    .cost.matmul_flops = flops,
    .reference.evaluate = reference,
};

const struct op_file op_file_llm_int8_matmul = {
    .name = "llm_int8_matmul",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
};
