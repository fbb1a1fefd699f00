/* y = a b with what follows it done before it is written: what libraries of matmuls call epilogues. a [..., M, K],
 * b [K, N].
 *
 *   matmul_bias         y = a b + bias
 *   matmul_gelu         aux = a b, y = gelu_tanh(aux); matmul_bias_gelu adds the bias first
 *   matmul_relu         y = max(a b, 0), aux = where a b > 0, a bit an element; matmul_bias_relu
 *   matmul_dgelu        y = gelu_tanh'(aux) (a b); matmul_drelu
 *   matmul_dgelu_sum    the same, and d_bias = Σ over rows of y; matmul_drelu_sum
 *   matmul_sum          y = a b, d_bias = Σ over rows of b
 *
 * The plan makes them of nodes that were differentiated before. */
#include <string.h>

#include "gen/ops/support/support.h"

enum { MASK_BITS = 32 }; /* of relu's aux, in an element of int32 */

static bool has(const struct node *node, enum epilogue epilogue) {
  return (node->kind->library.epilogues & EPILOGUE_BIT(epilogue)) != 0;
}

static const struct op_kind *plain(void) {
  return op_kind_find("matmul");
}

/* Position of the operand after a and b, or after y, that is saved or was. */
static int aux_input(const struct node *node) {
  return has(node, EPILOGUE_BIAS) ? 3 : 2;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (plain()->infer(arena, node, shapes, dtypes, error) == 0) return 0;
  struct shape y = shapes[0], vector = shape_of(1, op_columns(y));
  bool masks = has(node, EPILOGUE_RELU) || has(node, EPILOGUE_DRELU);
  struct shape saved = masks ? op_with_extent(y, y.rank - 1, op_columns(y) / MASK_BITS) : y;
  int count = 1;
  if (has(node, EPILOGUE_BIAS) && !op_check_shape(arena, node, 2, vector, "one for each column", error)) return 0;
  if (has(node, EPILOGUE_DGELU) || has(node, EPILOGUE_DRELU)) {
    if (!op_check_shape(arena, node, aux_input(node), saved, "the saved values of y", error)) return 0;
  }
  if (has(node, EPILOGUE_GELU) || has(node, EPILOGUE_RELU)) {
    shapes[count] = saved;
    dtypes[count++] = masks ? DTYPE_INT32 : dtypes[0];
  }
  if (has(node, EPILOGUE_SUM)) {
    shapes[count] = vector;
    dtypes[count++] = dtypes[0];
  }
  return count;
}

/* Factors are laid out as in a matmul alone. What is saved is laid out as y is, and all vectors are without gaps; y may
 * be by columns where nothing but a sum is made with it. */
static bool accepts(const struct node *node, bool output, int index, const int64_t *strides) {
  bool any_layout = node->kind->library.epilogues == EPILOGUE_BIT(EPILOGUE_SUM);
  if (output ? index > 0 || !any_layout : index > 1) return false;
  return plain()->layout.accepts(node, output, index, strides);
}

/* ---- The reference ---- */

static void set_bit(double *element, int bit) {
  uint32_t bits = (uint32_t)(int32_t)*element | 1u << bit;
  *element = (double)(int32_t)bits;
}

static bool has_bit(double element, int bit) {
  return (uint32_t)(int32_t)element >> bit & 1u;
}

static void curve(const struct node *node, double *y, double *aux) {
  int64_t count = shape_count(node->outputs[0]->shape);
  const struct op_kind *gelu = op_kind_find("gelu_tanh");
  for (int64_t i = 0; i < count && has(node, EPILOGUE_GELU); i++) {
    aux[i] = y[i];
    y[i] = gelu->reference.scalar(y[i]);
  }
  if (!has(node, EPILOGUE_RELU)) return;
  for (int64_t i = 0; i < count / MASK_BITS; i++) aux[i] = 0;
  for (int64_t i = 0; i < count; i++) {
    if (y[i] > 0) set_bit(&aux[i / MASK_BITS], (int)(i % MASK_BITS));
    y[i] = y[i] > 0 ? y[i] : 0;
  }
}

static void slope(const struct node *node, double *y, const double *aux) {
  const struct op_kind *gelu = op_kind_find("gelu_tanh")->slope;
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++)
    y[i] *=
        has(node, EPILOGUE_DGELU) ? gelu->reference.scalar(aux[i]) : has_bit(aux[i / MASK_BITS], (int)(i % MASK_BITS));
}

static void add_up(const double *x, int64_t rows, int64_t columns, double *sums) {
  for (int64_t c = 0; c < columns; c++) sums[c] = 0;
  for (int64_t i = 0; i < rows * columns; i++) sums[i % columns] += x[i];
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct shape shape = node->outputs[0]->shape;
  int64_t columns = op_columns(shape), count = shape_count(shape);
  double *y = outputs[0];
  bool slopes = has(node, EPILOGUE_DGELU) || has(node, EPILOGUE_DRELU);
  plain()->reference.evaluate(node, inputs, outputs);
  for (int64_t i = 0; i < count && has(node, EPILOGUE_BIAS); i++) y[i] += inputs[2][i % columns];
  if (has(node, EPILOGUE_GELU) || has(node, EPILOGUE_RELU)) curve(node, y, outputs[1]);
  if (slopes) slope(node, y, inputs[aux_input(node)]);
  if (!has(node, EPILOGUE_SUM)) return;
  if (slopes)
    add_up(y, op_rows(shape), columns, outputs[1]);
  else
    add_up(inputs[1], node->inputs[1]->shape.dim[0], columns, outputs[1]);
}

static double matmul_flops(const struct node *node) {
  return plain()->cost.flops(node);
}

/* What an operation of its own would count: one an element of what it is over. */
static double flops(const struct node *node) {
  double own = 0;
  for (int epilogue = EPILOGUE_BIAS; epilogue < EPILOGUE_SUM; epilogue++)
    if (has(node, (enum epilogue)epilogue)) own += (double)shape_count(node->outputs[0]->shape);
  if (node->kind->library.epilogues == EPILOGUE_BIT(EPILOGUE_SUM))
    own += (double)shape_count(node->inputs[1]->shape);
  else if (has(node, EPILOGUE_SUM))
    own += (double)shape_count(node->outputs[0]->shape);
  return matmul_flops(node) + own;
}

/* ---- Kinds ---- */

#define MATMUL                                                                                                         \
  .class = OP_KERNEL, .template_name = "matmul", .infer = infer, .layout.accepts = accepts,                            \
  .reference.evaluate = reference, .cost.flops = flops, .cost.matmul_flops = matmul_flops,                             \
  .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16}
#define FORWARD(bits) MATMUL, .library.epilogues = (bits)

enum {
  BIAS = EPILOGUE_BIT(EPILOGUE_BIAS),
  GELU = EPILOGUE_BIT(EPILOGUE_GELU),
  RELU = EPILOGUE_BIT(EPILOGUE_RELU),
  DGELU = EPILOGUE_BIT(EPILOGUE_DGELU),
  DRELU = EPILOGUE_BIT(EPILOGUE_DRELU),
  SUM = EPILOGUE_BIT(EPILOGUE_SUM)
};

static const struct op_kind bias = {FORWARD(BIAS), .name = "matmul_bias", .input_names = {"a", "b", "bias"},
                                    .output_names = {"y"}};
static const struct op_kind gelu = {FORWARD(GELU), .name = "matmul_gelu", .input_names = {"a", "b"},
                                    .output_names = {"y", "aux"}};
static const struct op_kind bias_gelu = {FORWARD(BIAS | GELU), .name = "matmul_bias_gelu",
                                         .input_names = {"a", "b", "bias"}, .output_names = {"y", "aux"}};
static const struct op_kind relu = {FORWARD(RELU), .name = "matmul_relu", .input_names = {"a", "b"},
                                    .output_names = {"y", "aux"}};
static const struct op_kind bias_relu = {FORWARD(BIAS | RELU), .name = "matmul_bias_relu",
                                         .input_names = {"a", "b", "bias"}, .output_names = {"y", "aux"}};
static const struct op_kind dgelu = {FORWARD(DGELU), .name = "matmul_dgelu", .input_names = {"a", "b", "aux"},
                                     .output_names = {"y"}};
static const struct op_kind drelu = {FORWARD(DRELU), .name = "matmul_drelu", .input_names = {"a", "b", "aux"},
                                     .output_names = {"y"}};
static const struct op_kind dgelu_sum = {FORWARD(DGELU | SUM), .name = "matmul_dgelu_sum",
                                         .input_names = {"a", "b", "aux"}, .output_names = {"y", "d_bias"}};
static const struct op_kind drelu_sum = {FORWARD(DRELU | SUM), .name = "matmul_drelu_sum",
                                         .input_names = {"a", "b", "aux"}, .output_names = {"y", "d_bias"}};
static const struct op_kind sum = {FORWARD(SUM), .memory.accumulates = 1, .name = "matmul_sum",
                                   .input_names = {"a", "b"}, .output_names = {"y", "d_bias"}};

static const struct op_kind *const kinds[] = {&bias,  &gelu,      &bias_gelu, &relu, &bias_relu, &dgelu,
                                              &drelu, &dgelu_sum, &drelu_sum, &sum,  NULL};

const struct op_kind *op_matmul_with(unsigned epilogues) {
  for (int i = 0; kinds[i] != NULL; i++)
    if (kinds[i]->library.epilogues == epilogues) return kinds[i];
  return NULL;
}

const struct op_file op_file_matmul_epilogues = {.name = "matmul_epilogues", .kinds = kinds};
