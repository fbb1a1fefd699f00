/* A sparse matrix times a dense one: y = the sum over its elements e of values[e] x[columns[e]] in row rows[e]; of
 * equal positions they add up. With dy: dx is the product of the transposed matrix, which has rows and columns
 * exchanged, and dy; dvalues[e] = the sum of dy[rows[e]] x[columns[e]]: a kind of its own, whose gradients are products
 * again. */
#include <string.h>

#include "gen/ops/support/nodes.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* Whether inputs 0 and 1 are the rows and columns of as many elements. */
static bool good_positions(struct arena *arena, const struct node *node, const char **error) {
  for (int i = 0; i < 2; i++)
    if (!op_check_dtype(arena, node, i, DTYPE_INT32, error)) return false;
  if (node->inputs[0]->shape.rank != 1) {
    op_fail(arena, node, error, "%s must have one dimension", op_operand_text(arena, node, 0));
    return false;
  }
  return op_check_shape(arena, node, 1, node->inputs[0]->shape, "one for each element, as the rows", error);
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!good_positions(arena, node, error)) return 0;
  for (int i = 2; i < 4; i++)
    if (!op_check_dtype(arena, node, i, DTYPE_FLOAT32, error)) return 0;
  if (!op_check_shape(arena, node, 2, node->inputs[0]->shape, "one for each element, as the rows", error)) return 0;
  struct shape x = node->inputs[3]->shape;
  if (x.rank != 2) return op_fail(arena, node, error, "%s must be [rows][columns]", op_operand_text(arena, node, 3));
  return op_result(shapes, dtypes, op_with_extent(x, 0, node_int(node, "rows")), DTYPE_FLOAT32);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t width = op_columns(node->outputs[0]->shape);
  memset(outputs[0], 0, (size_t)shape_count(node->outputs[0]->shape) * sizeof(double));
  for (int64_t e = 0; e < shape_count(node->inputs[0]->shape); e++)
    for (int64_t c = 0; c < width; c++)
      outputs[0][(int64_t)inputs[0][e] * width + c] += inputs[2][e] * inputs[3][(int64_t)inputs[1][e] * width + c];
}

static struct value *sparse_matmul(struct builder *builder, struct value *rows, struct value *columns,
                                   struct value *values, struct value *x, int64_t count) {
  struct attribute attribute = attribute_int("rows", count);
  return builder_op(builder, "sparse_matmul", (struct value *[]){rows, columns, values, x}, 4, &attribute, 1);
}

static struct value *dot(struct builder *builder, struct value *rows, struct value *columns, struct value *a,
                         struct value *b) {
  return builder_op(builder, "sparse_dot", (struct value *[]){rows, columns, a, b}, 4, NULL, 0);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *rows = node->inputs[0], *columns = node->inputs[1], *values = node->inputs[2], *x = node->inputs[3];
  if (builder_wants_gradient(builder, values)) dx[2] = dot(builder, rows, columns, dy[0], x);
  if (builder_wants_gradient(builder, x)) dx[3] = sparse_matmul(builder, columns, rows, values, dy[0], x->shape.dim[0]);
}

static double flops(const struct node *node) {
  return op_flops_each(node, 0, 2 * (double)op_columns(node->inputs[3]->shape));
}

static int64_t index_limit(const struct node *node, int input) {
  return input == 0 ? node_int(node, "rows") : input == 1 ? node->inputs[3]->shape.dim[0] : 0;
}

static void lower(struct stablehlo *hlo) {
  const struct hlo values = hlo_input(hlo, 2), x = hlo_rows(hlo, hlo_input(hlo, 3), hlo_raw_input(hlo, 1));
  const struct hlo column = hlo_reshape(hlo, values, shape_of(2, values.shape.dim[0], INT64_C(1)));
  hlo_result(hlo, 0,
             hlo_add_rows(hlo, node_int(hlo_node(hlo), "rows"), hlo_raw_input(hlo, 0), hlo_mul(hlo, column, x)));
}

static const struct op_kind kind = {
    .name = "sparse_matmul",
    .lower.write = lower,
    .class = OP_KERNEL,
    .input_names = {"rows", "columns", "values", "x"},
    .output_names = {"y"},
    .infer = infer,
    .gradient = gradient,
    .memory.accumulates = 1,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .types.wide = true,
    .cost.flops = flops,
    .index.limit = index_limit,
    .reference.evaluate = reference,
};

/* ---- One element's product of rows: y[e] = the sum of a[rows[e]] b[columns[e]] ---- */

static int infer_dot(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                     const char **error) {
  if (!good_positions(arena, node, error)) return 0;
  if (!op_check_rank(arena, node, 2, 2, error) || !op_check_rank(arena, node, 3, 2, error)) return 0;
  struct shape b = node->inputs[3]->shape;
  if (!op_check_shape(arena, node, 2, op_with_extent(b, 0, node->inputs[2]->shape.dim[0]), "b's columns", error))
    return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, DTYPE_FLOAT32);
}

static void reference_dot(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t width = op_columns(node->inputs[2]->shape);
  for (int64_t e = 0; e < shape_count(node->inputs[0]->shape); e++) {
    outputs[0][e] = 0;
    for (int64_t c = 0; c < width; c++)
      outputs[0][e] += inputs[2][(int64_t)inputs[0][e] * width + c] * inputs[3][(int64_t)inputs[1][e] * width + c];
  }
}

static void gradient_dot(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *rows = node->inputs[0], *columns = node->inputs[1], *a = node->inputs[2], *b = node->inputs[3];
  if (builder_wants_gradient(builder, a)) dx[2] = sparse_matmul(builder, rows, columns, dy[0], b, a->shape.dim[0]);
  if (builder_wants_gradient(builder, b)) dx[3] = sparse_matmul(builder, columns, rows, dy[0], a, b->shape.dim[0]);
}

static int64_t index_limit_dot(const struct node *node, int input) {
  return input < 2 ? node->inputs[2 + input]->shape.dim[0] : 0;
}

static void lower_dot(struct stablehlo *hlo) {
  const struct hlo a = hlo_rows(hlo, hlo_input(hlo, 2), hlo_raw_input(hlo, 0));
  const struct hlo b = hlo_rows(hlo, hlo_input(hlo, 3), hlo_raw_input(hlo, 1));
  hlo_result(hlo, 0, hlo_reduce_rows(hlo, "add", hlo_mul(hlo, a, b)));
}

static const struct op_kind kind_dot = {
    .name = "sparse_dot",
    .lower.write = lower_dot,
    .class = OP_KERNEL,
    .template_name = "sparse",
    .input_names = {"rows", "columns", "a", "b"},
    .output_names = {"y"},
    .infer = infer_dot,
    .gradient = gradient_dot,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .types.wide = true,
    .cost.flops = flops,
    .index.limit = index_limit_dot,
    .reference.evaluate = reference_dot,
};

/* ---- Rows of elements that are by rows: y[e] = the last row that starts at e or before ---- */

static int infer_rows(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error) {
  if (!op_check_dtype(arena, node, 0, DTYPE_INT32, error)) return 0;
  if (node->inputs[0]->shape.rank != 1)
    return op_fail(arena, node, error, "%s must be [rows]", op_operand_text(arena, node, 0));
  return op_result(shapes, dtypes, shape_of(1, node_int(node, "count")), DTYPE_INT32);
}

static void reference_rows(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t started = 0, rows = node->inputs[0]->shape.dim[0];
  for (int64_t e = 0; e < node_int(node, "count"); e++) {
    while (started < rows && inputs[0][started] <= (double)e) started++;
    outputs[0][e] = started > 0 ? (double)(started - 1) : 0;
  }
}

static void range_rows(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  (void)none;
  *low = 0;
  *high = node->inputs[0]->shape.dim[0] - 1;
}

/* How many rows start at e or before, without the last of them. */
static void lower_rows(struct stablehlo *hlo) {
  const struct hlo starts = hlo_raw_input(hlo, 0);
  const struct shape all = shape_of(2, node_int(hlo_node(hlo), "count"), starts.shape.dim[0]);
  const struct hlo started = hlo_compare(hlo, "LE", starts, hlo_iota(hlo, all, 0, HLO_I32));
  const struct hlo count = hlo_reduce(hlo, "add", hlo_convert(hlo, started, HLO_I32), shape_of(1, INT64_C(1)), false);
  hlo_result(hlo, 0, hlo_binary(hlo, "maximum", hlo_sub(hlo, count, hlo_number(1)), hlo_number(0)));
}

static const struct op_kind kind_rows = {
    .name = "sparse_rows",
    .lower.write = lower_rows,
    .class = OP_KERNEL,
    .template_name = "sparse",
    .input_names = {"starts"},
    .output_names = {"y"},
    .infer = infer_rows,
    .cost.flops = op_flops_none,
    .index.range = range_rows,
    .reference.evaluate = reference_rows,
};

/* ---- Functions ---- */

/* sparse_matmul(rows, columns, values, x, count) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  if (arguments[4].integer >= 1)
    return sparse_matmul(builder, op_tensor(arguments, 0), op_tensor(arguments, 1), op_tensor(arguments, 2),
                         op_tensor(arguments, 3), arguments[4].integer);
  builder_error(builder, "sparse_matmul: the number of rows must be at least 1, not %lld",
                (long long)arguments[4].integer);
  return NULL;
}

/* sparse_matmul_csr(starts, columns, values, x): starts ends with the number of elements, which nothing reads. */
static struct value *build_csr(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *starts = op_tensor(arguments, 0), *columns = op_tensor(arguments, 1);
  if (starts == NULL || columns == NULL) return NULL;
  if (starts->shape.rank != 1 || starts->shape.dim[0] < 2) {
    builder_error(builder, "sparse_matmul_csr: starts %s must be [rows + 1]",
                  shape_text(builder_arena(builder), starts->shape));
    return NULL;
  }
  int64_t n_rows = starts->shape.dim[0] - 1;
  struct attribute elements = attribute_int("count", shape_count(columns->shape));
  struct value *first = op_slice(builder, starts, 0, 0, n_rows);
  struct value *rows = first != NULL ? builder_op(builder, "sparse_rows", &first, 1, &elements, 1) : NULL;
  if (rows == NULL) return NULL;
  return sparse_matmul(builder, rows, columns, op_tensor(arguments, 2), op_tensor(arguments, 3), n_rows);
}

const struct op_file op_file_sparse_matmul = {
    .name = "sparse_matmul",
    .kinds = (const struct op_kind *const[]){&kind, &kind_dot, &kind_rows, NULL},
    .functions =
        (const struct op_function[]){{"sparse_matmul", .build = build}, {"sparse_matmul_csr", .build = build_csr}, {0}},
};
