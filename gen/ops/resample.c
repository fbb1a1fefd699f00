/* A linear map along one axis, in which each position of y is a sum over as many positions in a row of x:
 *   y[o][i][r] = the sum over j < terms of factors[i][j] x[o][starts[i] + j][r].
 * The gradient is the transposed map. Averages over windows and interpolation are such maps along height and along
 * width, one after the other; the factors are worked out here. */
#include <math.h>
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/nodes.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  struct shape y = node->inputs[0]->shape;
  y.dim[node_int(node, "axis")] = node_int(node, "positions");
  return op_result(shapes, dtypes, y, node->inputs[0]->dtype);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int axis = (int)node_int(node, "axis");
  struct op_block x = op_block(node->inputs[0]->shape, axis), y = op_block(node->outputs[0]->shape, axis);
  const double *starts = node_reals(node, "starts"), *factors = node_reals(node, "factors");
  int64_t terms = node_int(node, "terms");
  for (int64_t o = 0; o < y.outer; o++)
    for (int64_t i = 0; i < y.extent; i++)
      for (int64_t r = 0; r < y.inner; r++) {
        double sum = 0;
        for (int64_t j = 0; j < terms; j++)
          sum += factors[i * terms + j] * inputs[0][(o * x.extent + (int64_t)starts[i] + j) * x.inner + r];
        outputs[0][(o * y.extent + i) * y.inner + r] = sum;
      }
}

static double flops(const struct node *node) {
  struct op_block y = op_block(node->outputs[0]->shape, (int)node_int(node, "axis"));
  const double *factors = node_reals(node, "factors");
  double terms = 0;
  for (int64_t i = 0; i < y.extent * node_int(node, "terms"); i++) terms += factors[i] != 0;
  return 2 * terms * (double)y.outer * (double)y.inner;
}

/* A map in the making: a dense matrix [to][from]. */
struct map {
  int64_t from, to;
  double *weights;
};

static struct map map_new(struct arena *arena, int64_t from, int64_t to) {
  struct map map = {from, to, NULL};
  map.weights = arena_alloc(arena, (size_t)from * (size_t)to * sizeof *map.weights);
  return map;
}

/* Where the weights of a position of y begin and end, which are not 0. */
static void find_row(struct map map, int64_t i, int64_t *start, int64_t *end) {
  const double *row = map.weights + i * map.from;
  *start = 0, *end = map.from;
  while (*start < *end && row[*start] == 0) ++*start;
  while (*end > *start && row[*end - 1] == 0) --*end;
}

/* Without the positions of x before the first and after the last one that counts, so that the kernel reads its operand
 * up to both ends. All positions of y have as many terms; even: one rule of starts, or one row of factors. */
static struct value *resample(struct builder *builder, struct value *x, int axis, struct map map) {
  struct arena *arena = builder_arena(builder);
  int64_t first = map.from, needed = 0, terms = 1, start, end;
  for (int64_t i = 0; i < map.to; i++) {
    find_row(map, i, &start, &end);
    if (start == end) continue;
    if (start < first) first = start;
    if (end > needed) needed = end;
    if (end - start > terms) terms = end - start;
  }
  if (first >= needed) first = 0, needed = 1; /* none counts */
  double *starts = arena_alloc(arena, (size_t)map.to * sizeof *starts);
  double *factors = arena_alloc(arena, (size_t)(map.to * terms) * sizeof *factors);
  bool even_starts = true, even_factors = true;
  for (int64_t i = 0; i < map.to; i++) {
    find_row(map, i, &start, &end);
    if (start == end) start = first;
    if (start + terms > needed) start = needed - terms;
    starts[i] = (double)(start - first);
    for (int64_t j = 0; j < terms; j++) factors[i * terms + j] = map.weights[i * map.from + start + j];
    even_starts = even_starts && (i == 0 || starts[i] - starts[i - 1] == starts[1] - starts[0]);
    even_factors = even_factors && memcmp(factors, factors + i * terms, (size_t)terms * sizeof *factors) == 0;
  }
  struct attribute attributes[] = {attribute_int("axis", axis),
                                   attribute_int("positions", map.to),
                                   attribute_int("terms", terms),
                                   attribute_int("even_starts", even_starts),
                                   attribute_reals("starts", starts, map.to),
                                   attribute_int("even_factors", even_factors),
                                   attribute_reals("factors", factors, map.to * terms)};
  if (first > 0 || needed < map.from) x = op_slice(builder, x, axis, first, needed - first);
  return builder_op(builder, "resample", &x, 1, attributes, 7);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  int axis = (int)node_int(node, "axis");
  int64_t from = node->inputs[0]->shape.dim[axis], to = node_int(node, "positions"), terms = node_int(node, "terms");
  struct map back = map_new(builder_arena(builder), to, from);
  const double *starts = node_reals(node, "starts"), *factors = node_reals(node, "factors");
  for (int64_t i = 0; i < to; i++)
    for (int64_t j = 0; j < terms; j++) back.weights[((int64_t)starts[i] + j) * to + i] = factors[i * terms + j];
  dx[0] = resample(builder, dy[0], axis, back);
}

/* The map as a matrix [from][to]. */
static double *matrix_of(struct arena *arena, int64_t from, int64_t to, int64_t terms, const double *starts,
                         const double *factors) {
  double *map = arena_alloc(arena, (size_t)(from * to) * sizeof *map);
  for (int64_t i = 0; i < to; i++)
    for (int64_t j = 0; j < terms; j++) map[((int64_t)starts[i] + j) * to + i] = factors[i * terms + j];
  return map;
}

/* A product with the matrix. */
static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const int axis = (int)node_int(node, "axis"), last = node->inputs[0]->shape.rank - 1;
  const int64_t from = node->inputs[0]->shape.dim[axis], to = node_int(node, "positions");
  const double *map = matrix_of(hlo_arena(hlo), from, to, node_int(node, "terms"), node_reals(node, "starts"),
                                node_reals(node, "factors"));
  const struct hlo matrix = hlo_table(hlo, map, shape_of(2, from, to), HLO_F32);
  const struct hlo x = hlo_exchange(hlo, hlo_input(hlo, 0), axis, last);
  hlo_result(hlo, 0, hlo_exchange(hlo, hlo_dot(hlo, x, matrix, 0, last, 0), axis, last));
}

/* The same. */
static void write_onnx(struct onnx *onnx) {
  const int axis = (int)onnx_int(onnx, "axis"), last = onnx_rank(onnx, 0) - 1;
  const struct onnx_extent from = onnx_dim(onnx, 0, axis);
  const int64_t to = onnx_int(onnx, "positions"), terms = onnx_int(onnx, "terms");
  const double *starts = onnx_reals(onnx, "starts"), *factors = onnx_reals(onnx, "factors");
  const struct onnx_extent extents[] = {from, onnx_fixed(to)};
  onnx_ignore(onnx, "even_starts");
  onnx_ignore(onnx, "even_factors");
  if (!onnx_is_fixed(from)) {
    onnx_fail(onnx, "it is along an axis that follows the sizes");
    return;
  }
  const double *map = matrix_of(onnx_arena(onnx), from.base, to, terms, starts, factors);
  const char *matrix = onnx_reshape(onnx, onnx_list(onnx, DTYPE_FLOAT32, map, from.base * to), extents, 2);
  const char *x = onnx_exchange(onnx, onnx_input(onnx, 0), last + 1, axis, last);
  onnx_result(onnx, 0, onnx_exchange(onnx, onnx_binary(onnx, "MatMul", x, matrix), last + 1, axis, last));
}

static const struct op_kind kind = {
    .name = "resample",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .gradient = gradient,
    .memory.accumulates = 1,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_AS_IS},
    .cost.flops = flops,
    .reference.evaluate = reference,
};

/* ---- Maps: PyTorch's ---- */

/* Means over windows, the padding counted among their elements. */
static struct map windows(struct arena *arena, int64_t from, int64_t kernel, int64_t stride, int64_t padding) {
  struct map map = map_new(arena, from, (from + 2 * padding - kernel) / stride + 1);
  for (int64_t i = 0; i < map.to; i++)
    for (int64_t j = i * stride - padding, end = j + kernel; j < end; j++)
      if (j >= 0 && j < from) map.weights[i * from + j] = 1 / (double)kernel;
  return map;
}

/* Means over `to` windows that cover all. */
static struct map parts(struct arena *arena, int64_t from, int64_t to) {
  struct map map = map_new(arena, from, to);
  for (int64_t i = 0; i < to; i++) {
    int64_t start = i * from / to, end = ((i + 1) * from + to - 1) / to;
    for (int64_t j = start; j < end; j++) map.weights[i * from + j] = 1 / (double)(end - start);
  }
  return map;
}

static struct map nearest(struct arena *arena, int64_t from, int64_t to) {
  struct map map = map_new(arena, from, to);
  for (int64_t i = 0; i < to; i++) map.weights[i * from + i * from / to] = 1;
  return map;
}

/* Between the two positions that are nearest; `corners`: the first and the last of both are at the same position, else
 * all are spread over the same length (align_corners). */
static struct map between(struct arena *arena, int64_t from, int64_t to, bool corners) {
  struct map map = map_new(arena, from, to);
  for (int64_t i = 0; i < to; i++) {
    double position = corners ? (to > 1 ? (double)(i * (from - 1)) / (double)(to - 1) : 0)
                              : fmax(((double)i + 0.5) * (double)from / (double)to - 0.5, 0);
    int64_t low = (int64_t)position, high = low + 1 < from ? low + 1 : low;
    map.weights[i * from + low] += 1 - (position - (double)low);
    map.weights[i * from + high] += position - (double)low;
  }
  return map;
}

/* ---- Functions ---- */

/* Whether x has these many dimensions after batch and channels; an error otherwise. */
static bool check(struct builder *builder, const char *function, const struct value *x, int rank) {
  if (x == NULL) return false;
  if (x->shape.rank == rank + 2) return true;
  builder_error(builder, "%s: x %s must be %s", function, shape_text(builder_arena(builder), x->shape),
                rank == 2 ? "[batch][channels][height][width]" : "[batch][channels][length]");
  return false;
}

static struct value *average(struct builder *builder, const char *function, const struct argument *arguments,
                             int rank) {
  struct value *x = op_tensor(arguments, 0);
  int64_t kernel = arguments[1].integer, stride = arguments[2].integer, padding = arguments[3].integer;
  if (!check(builder, function, x, rank)) return NULL;
  for (int axis = 2; axis < rank + 2 && x != NULL; axis++) {
    int64_t extent = x->shape.dim[axis];
    if (kernel < 1 || stride < 1 || padding < 0 || 2 * padding > kernel || extent + 2 * padding < kernel) {
      builder_error(builder,
                    "%s: a window of %lld by a stride of %lld with padding %lld does not fit on x %s; padding is at "
                    "most half of the window",
                    function, (long long)kernel, (long long)stride, (long long)padding,
                    shape_text(builder_arena(builder), x->shape));
      return NULL;
    }
    x = resample(builder, x, axis, windows(builder_arena(builder), extent, kernel, stride, padding));
  }
  return x;
}

enum how { PARTS, NEAREST, BETWEEN, CORNERS };

static struct value *resize(struct builder *builder, const char *function, const struct argument *arguments, int rank,
                            enum how how) {
  struct arena *arena = builder_arena(builder);
  struct value *x = op_tensor(arguments, 0);
  if (!check(builder, function, x, rank)) return NULL;
  for (int axis = 2; axis < rank + 2 && x != NULL; axis++) {
    int64_t from = x->shape.dim[axis], to = arguments[axis - 1].integer;
    if (to < 1) {
      builder_error(builder, "%s: extents must be at least 1, not %lld", function, (long long)to);
      return NULL;
    }
    if (from == to) continue;
    x = resample(builder, x, axis,
                 how == PARTS     ? parts(arena, from, to)
                 : how == NEAREST ? nearest(arena, from, to)
                                  : between(arena, from, to, how == CORNERS));
  }
  return x;
}

static struct value *build_avg_pool1d(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return average(builder, "avg_pool1d", arguments, 1);
}

static struct value *build_avg_pool2d(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return average(builder, "avg_pool2d", arguments, 2);
}

static struct value *build_adaptive1d(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return resize(builder, "adaptive_avg_pool1d", arguments, 1, PARTS);
}

static struct value *build_adaptive2d(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return resize(builder, "adaptive_avg_pool2d", arguments, 2, PARTS);
}

static struct value *build_nearest(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return resize(builder, "interpolate_nearest", arguments, 2, NEAREST);
}

static struct value *build_bilinear(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return resize(builder, "interpolate_bilinear", arguments, 2, BETWEEN);
}

static struct value *build_bilinear_corners(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return resize(builder, "interpolate_bilinear_corners", arguments, 2, CORNERS);
}

const struct op_file op_file_resample = {
    .name = "resample",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions =
        (const struct op_function[]){
            {"avg_pool1d", .build = build_avg_pool1d},
            {"avg_pool2d", .build = build_avg_pool2d},
            {"adaptive_avg_pool1d", .build = build_adaptive1d},
            {"adaptive_avg_pool2d", .build = build_adaptive2d},
            {"interpolate_nearest", .build = build_nearest},
            {"interpolate_bilinear", .build = build_bilinear},
            {"interpolate_bilinear_corners", .build = build_bilinear_corners},
            {0},
        },
};
