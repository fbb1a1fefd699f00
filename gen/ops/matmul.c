/* y = a b over the last two dimensions: a [..., M, K] times b [..., K, N], or times one b [K, N] for all.
 * da = dy b^T, db = a^T dy; with one b for all, a and dy are taken as one matrix of all their rows. */
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int64_t extent(const struct value *value, int from_end) {
  return value->shape.dim[value->shape.rank - from_end];
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  const struct value *a = node->inputs[0], *b = node->inputs[1];
  for (int i = 0; i < 2; i++)
    if (!op_check_float(arena, node, i, error) || !op_check_rank(arena, node, i, 2, error)) return 0;
  if (!op_check_same_float(arena, node, 2, error)) return 0;
  const char *left = op_operand_text(arena, node, 0), *right = op_operand_text(arena, node, 1);
  if (extent(a, 1) != extent(b, 2))
    return op_fail(arena, node, error, "%s and %s: a has %lld columns but b has %lld rows", left, right,
                   (long long)extent(a, 1), (long long)extent(b, 2));
  if (b->shape.rank > 2 && !shape_equal(op_leading(op_leading(a->shape)), op_leading(op_leading(b->shape))))
    return op_fail(arena, node, error, "%s and %s: the dimensions before the last two differ", left, right);
  return op_result(shapes, dtypes, op_with_extent(a->shape, a->shape.rank - 1, extent(b, 1)), a->dtype);
}

static void multiply(const double *a, const double *b, double *y, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];
      y[i * n + j] = sum;
    }
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct value *a = node->inputs[0], *b = node->inputs[1];
  int64_t m = extent(a, 2), k = extent(a, 1), n = extent(b, 1), matrices = shape_count(a->shape) / (m * k);
  for (int64_t i = 0; i < matrices; i++)
    multiply(inputs[0] + i * m * k, inputs[1] + (b->shape.rank > 2 ? i * k * n : 0), outputs[0] + i * m * n, m, k, n);
}

/* All rows of x as one matrix. */
static struct value *as_matrix(struct builder *builder, struct value *x) {
  return op_reshape(builder, x, shape_of(2, op_rows(x->shape), op_columns(x->shape)));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *a = node->inputs[0], *b = node->inputs[1];
  if (builder_wants_gradient(builder, a)) dx[0] = op_matmul(builder, dy[0], op_matrix_transpose(builder, b));
  if (!builder_wants_gradient(builder, b)) return;
  bool one = b->shape.rank == 2;
  struct value *left = one ? as_matrix(builder, a) : a, *right = one ? as_matrix(builder, dy[0]) : dy[0];
  dx[1] = op_matmul(builder, op_matrix_transpose(builder, left), right);
}

/* A matrix of the library of matmuls: one stride is 1, the other one skips at least a whole line. */
static bool is_matrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  return (column_stride == 1 && row_stride >= columns) || (row_stride == 1 && column_stride >= rows);
}

/* With one b for all, all rows of a and y are one matrix; otherwise the leading dimensions are a loop. */
static bool accepts(const struct node *node, bool output, int index, const int64_t *strides) {
  struct shape shape = output ? node->outputs[0]->shape : node->inputs[index]->shape;
  int last = shape.rank - 1;
  bool one = node->inputs[1]->shape.rank == 2;
  for (int i = 0; i < shape.rank; i++)
    if (strides[i] < 1 && shape.dim[i] != 1) return false;
  if (!one) return is_matrix(shape.dim[last - 1], shape.dim[last], strides[last - 1], strides[last]);
  int64_t row_stride;
  if (!op_collapse(shape, strides, 0, last, strides[last - 1], &row_stride)) return false;
  return is_matrix(op_rows(shape), shape.dim[last], row_stride, strides[last]);
}

static double flops(const struct node *node) {
  return 2 * (double)shape_count(node->outputs[0]->shape) * (double)extent(node->inputs[0], 1);
}

/* Rows of y are those of a, columns those of b; the dimensions before are broadcast. */
int op_along_product(const struct node *node, int axis, int input) {
  if (input > 1) return AXIS_WHOLE;
  struct shape y = node->outputs[0]->shape, own = node->inputs[input]->shape;
  int mine = axis - (y.rank - own.rank), other = input == 0 ? y.rank - 1 : y.rank - 2;
  if (axis == other || mine < 0) return AXIS_WHOLE;
  return axis < y.rank - 2 && own.dim[mine] == 1 && y.dim[axis] != 1 ? AXIS_WHOLE : mine;
}

/* Parts of rows, of columns and of leading positions give parts of y. Parts of the depth, which both factors have, give
 * partial sums (Shoeybi et al., "Megatron-LM", arXiv:1909.08053, section 3). */
bool op_place_product(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const struct placement split = placements[seed], whole = {.form = PLACED_WHOLE};
  const int y = node->n_inputs;
  for (int i = 2; i < y; i++) placements[i] = whole;
  if (seed != y && seed > 1) return false;
  int a = node->inputs[0]->shape.rank, b = node->inputs[1]->shape.rank, own = seed == 1 ? b : a;
  int from_end = own - split.dim; /* 1: the last dimension */
  bool even = placement_fits(split, op_operand(node, seed)->shape, ranks);
  if ((seed == 0 && from_end == 1) || (seed == 1 && from_end == 2)) {
    placements[0] = placement_split(a - 1, split.blocks);
    placements[1] = placement_split(b - 2, split.blocks);
    placements[y] = (struct placement){.form = PLACED_PARTIAL};
    return even;
  }
  bool columns = from_end == 1;
  bool in_b = columns || (from_end > 2 && b > 2);
  placements[0] = columns ? whole : placement_split(a - from_end, split.blocks);
  placements[1] = in_b ? placement_split(b - from_end, split.blocks) : whole;
  placements[y] = placement_split(a - from_end, split.blocks);
  return columns || even;
}

/* The depth of a matmul by a parameter, as a part of which ranks have partial sums. */
static bool tried(const struct node *node, int *input, int *dim) {
  *input = 0;
  *dim = node->inputs[0]->shape.rank - 1;
  return viewed_value(node->inputs[1])->kind == VALUE_PARAMETER;
}

/* Whether one stride leads through dimension `d` and the one after it. */
static bool runs_on(struct shape shape, const int64_t *strides, int d) {
  return strides[d] == strides[d + 1] * shape.dim[d + 1];
}

/* Matmuls that the kernel makes: one, or one for each of the leading positions where their rows are not evenly spaced.
 */
static int64_t count_gemms(const struct node *node, const int64_t *const *strides) {
  struct shape y = node->outputs[0]->shape, a = node->inputs[0]->shape;
  bool one = node->inputs[1]->shape.rank == 2 && a.rank == y.rank;
  for (int i = 0; i < y.rank - 2; i++) one = one && runs_on(a, strides[1], i) && runs_on(y, strides[0], i);
  return one ? 1 : shape_product(y, 0, y.rank - 2);
}

/* Multiplications of a small and of a large matmul, and of one of bfloat16 that threads divide; rows and columns of
 * a narrow one. */
enum { SMALL = 1000000, LARGE = 100000000, PARALLEL = 10000000, FEW = 32 };

/* The library divides a matmul among threads (library), each thread computes whole ones (each) or a part of one
 * (parts), or the library's primitive does it, made for the shape (primitive). Many small ones are for `each`, a large
 * one is for `parts`: threads then wait for each other once. A part of bfloat16 is some rows, for which each thread
 * reads the whole other matrix: there should not be more of it. */
static int variants(const struct node *node, const int64_t *const *strides, const char **variants) {
  const struct value *y = node->outputs[0];
  enum dtype from = node->inputs[0]->dtype;
  bool several = count_gemms(node, strides) > 1, bits16 = dtype_is_bits16(from);
  variants[0] = "library";
  bool by_rows = y->dtype == DTYPE_FLOAT32 || strides[0][y->shape.rank - 1] == 1;
  if (bits16 && (several || from != DTYPE_BFLOAT16 || !by_rows)) return 1;
  int64_t rows = several ? extent(y, 2) : op_rows(y->shape), columns = extent(y, 1);
  int64_t work = rows * columns * extent(node->inputs[0], 1);
  bool large = work >= (bits16 ? PARALLEL : LARGE) && rows >= FEW && columns >= FEW;
  bool by_library = several ? work < SMALL : large && (y->dtype == DTYPE_FLOAT32 || rows >= columns);
  variants[by_library ? 0 : 1] = several ? "each" : "parts";
  variants[by_library ? 1 : 0] = "library";
  variants[2] = "primitive"; /* which is what the library is where numbers have 16 bits */
  return bits16 ? 2 : 3;
}

/* One matmul of many rows over a matrix that is neither tiny nor so large that copying it is little compared with the
 * matmul: a large one of bfloat16, and one of floats, which its library makes by itself, where the matrix is by
 * columns. docs/matmul.md has the figures. */
static bool packs(const struct node *node, const int64_t *const *strides, int64_t times) {
  enum { MANY_ROWS = 2048, MOST = 1 << 20 };
  const struct value *y = node->outputs[0], *b = node->inputs[1];
  if (b->shape.rank != 2 || count_gemms(node, strides) > 1 || strides[0][y->shape.rank - 1] != 1) return false;
  int64_t rows = op_rows(y->shape), depth = extent(b, 2), columns = extent(b, 1);
  bool by_columns = strides[2][0] == 1 && strides[2][1] != 1, large = rows * depth * columns >= LARGE;
  if (rows * times < MANY_ROWS || depth < FEW || columns < FEW || depth * columns > MOST) return false;
  return y->dtype == DTYPE_FLOAT32 ? by_columns && !large : y->dtype == DTYPE_BFLOAT16 && large;
}

static void lower(struct stablehlo *hlo) {
  const struct hlo a = hlo_raw_input(hlo, 0), b = hlo_raw_input(hlo, 1);
  const int rank = a.shape.rank, batch = b.shape.rank - 2;
  hlo_result(hlo, 0, hlo_dot(hlo, a, b, batch, rank - 1, batch));
}

static const struct op_kind kind = {
    .name = "matmul",
    .lower.write = lower,
    .onnx.operator= "MatMul",
    .class = OP_KERNEL,
    .input_names = {"a", "b"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = op_along_product,
    .ranks.place = op_place_product,
    .ranks.divided_dim = 1 + 1, /* heads, before rows and columns */
    .ranks.pads = true,         /* columns */
    .ranks.tried = tried,
    .gradient = gradient,
    .layout.accepts = accepts,
    .memory.accumulates = 1,
    .library.matmul = true,
    .choice.variants = variants,
    .choice.what = "matmuls",
    .choice.deterministic = (const char *const[]){"each", "library", NULL},
    .library.packs = packs,
    .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16},
    .cost.flops = flops,
    .reference.evaluate = reference,
};

/* matmul_transposed(a, b) = a b^T */
static struct value *build_transposed(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *a = op_tensor(arguments, 0), *b = op_tensor(arguments, 1);
  if (a == NULL || b == NULL) return NULL;
  if (b->shape.rank < 2 || a->shape.rank < 1 || op_columns(a->shape) != op_columns(b->shape)) {
    struct arena *arena = builder_arena(builder);
    builder_error(builder, "matmul_transposed: a %s and b %s must have the same number of columns",
                  shape_text(arena, a->shape), shape_text(arena, b->shape));
    return NULL;
  }
  return op_matmul(builder, a, op_matrix_transpose(builder, b));
}

const struct op_file op_file_matmul = {
    .name = "matmul",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions =
        (const struct op_function[]){{"matmul", .kind = &kind}, {"matmul_transposed", .build = build_transposed}, {0}},
};
