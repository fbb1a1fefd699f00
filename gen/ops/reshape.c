/* y = the elements of x in row-major order under the extents `dims`; dx = dy under x's. */
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  const struct value *x = node->inputs[0];
  struct shape dims = node_ints(node, "dims");
  if (shape_count(x->shape) != shape_count(dims))
    return op_fail(arena, node, error, "%s has %lld elements, %s has %lld", op_operand_text(arena, node, 0),
                   (long long)shape_count(x->shape), shape_text(arena, dims), (long long)shape_count(dims));
  return op_result(shapes, dtypes, dims, x->dtype);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  memcpy(outputs[0], inputs[0], (size_t)shape_count(node->outputs[0]->shape) * sizeof(double));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_reshape(builder, dy[0], node->inputs[0]->shape);
}

/* Drops the dimensions of extent 1, which have no stride of their own. */
static struct shape squeezed(struct shape shape, const int64_t *strides, int64_t *squeezed_strides) {
  struct shape squeezed_shape = {0};
  for (int i = 0; i < shape.rank; i++) {
    if (shape.dim[i] == 1) continue;
    squeezed_strides[squeezed_shape.rank] = strides[i];
    squeezed_shape.dim[squeezed_shape.rank++] = shape.dim[i];
  }
  return squeezed_shape;
}

/* The extents [*next, ...) of `shape` whose product first reaches a common one with the other side; NumPy's
 * no-copy reshape (numpy/_core/src/multiarray/shape.c, _attempt_nocopy_reshape) over the squeezed `from`. */
static bool restride(struct shape full_from, const int64_t *full_strides, struct shape to, int64_t *out) {
  int64_t strides[MAX_RANK];
  struct shape from = squeezed(full_from, full_strides, strides);
  int i = 0, k = 0;
  while (i < from.rank) {
    int first = i, begin = k;
    int64_t left = from.dim[i++], right = to.dim[k++];
    while (left != right) {
      if (left < right)
        left *= from.dim[i++];
      else
        right *= to.dim[k++];
    }
    int64_t stride;
    if (!op_collapse(from, strides, first, i, 1, &stride)) return false;
    for (int d = k - 1; d >= begin; d--) {
      out[d] = stride;
      stride *= to.dim[d];
    }
  }
  for (; k < to.rank; k++) out[k] = 1; /* extents of 1 at the end */
  return true;
}

static bool view(const struct node *node, const int64_t *in_strides, int64_t *offset, int64_t *out_strides) {
  *offset = 0;
  return restride(node->inputs[0]->shape, in_strides, node->outputs[0]->shape, out_strides);
}

static bool unview(const struct node *node, const int64_t *out_strides, int64_t *in_strides) {
  return restride(node->outputs[0]->shape, out_strides, node->inputs[0]->shape, in_strides);
}

/* A dimension that stays what it is, with as much before it. */
static int along(const struct node *node, int axis, int input) {
  struct shape y = node->outputs[0]->shape, x = node->inputs[input]->shape;
  int64_t before = shape_product(y, 0, axis);
  for (int i = 0; i < x.rank; i++)
    if (x.dim[i] == y.dim[axis] && shape_product(x, 0, i) == before) return i;
  return AXIS_MIXED;
}

/* The dimensions [first, end) of a shape that a reshape makes of some of the other one's. */
struct group {
  int first, end;
};

/* The groups of x and of y that dimension `dim` belongs to, of x or (`of_y`) of y: the fewest dimensions of either that
 * have as many elements. */
static void find_groups(struct shape x, struct shape y, int dim, bool of_y, struct group *in_x, struct group *in_y) {
  *in_x = *in_y = (struct group){0};
  while ((of_y ? in_y : in_x)->end <= dim) {
    *in_x = (struct group){in_x->end, in_x->end};
    *in_y = (struct group){in_y->end, in_y->end};
    int64_t left = in_x->end < x.rank ? x.dim[in_x->end++] : 1, right = in_y->end < y.rank ? y.dim[in_y->end++] : 1;
    while (left != right)
      if (left < right)
        left *= x.dim[in_x->end++];
      else
        right *= y.dim[in_y->end++];
  }
}

/* The split of `to` that has the same elements on each rank as a split of `from`. Both groups have as many elements: a
 * rank has the same part of each of so many equal pieces of them. False: no one dimension gives these parts. */
static bool carry_over(struct shape from, struct group group, struct placement split, struct shape to,
                       struct group other, int64_t ranks, struct placement *placement) {
  int64_t pieces = shape_product(from, group.first, split.dim) * split.blocks, outer = 1;
  for (int d = other.first; d < other.end; outer *= to.dim[d++]) {
    if (pieces % outer != 0) return false;
    *placement = placement_split(d, pieces / outer);
    if (to.dim[d] % placement->blocks == 0 && to.dim[d] > placement->blocks && placement_fits(*placement, to, ranks))
      return true;
  }
  return false;
}

static bool place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  struct shape x = node->inputs[0]->shape, y = node->outputs[0]->shape;
  struct group in_x, in_y;
  find_groups(x, y, placements[seed].dim, seed == 1, &in_x, &in_y);
  if (seed == 0) return carry_over(x, in_x, placements[0], y, in_y, ranks, &placements[1]);
  return carry_over(y, in_y, placements[1], x, in_x, ranks, &placements[0]);
}

/* The dimension of the positions becomes one with those after it. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  const struct timeline from = new->timelines[0];
  struct shape x = node->inputs[0]->shape, y = node->outputs[0]->shape;
  if (!op_is_at(from, from.axis)) return NULL;
  for (int axis = 0; axis < y.rank; axis++) {
    if (shape_product(y, 0, axis) != shape_product(x, 0, from.axis) || y.dim[axis] % x.dim[from.axis] != 0) continue;
    int64_t each = y.dim[axis] / x.dim[from.axis];
    if (each < 2) continue;
    new->timeline = (struct timeline){.axis = axis, .more = (int)each - 1};
    return op_reshape(builder, new->inputs[0], op_with_extent(y, axis, new->width *each));
  }
  return NULL;
}

static void write_onnx(struct onnx *onnx) {
  struct onnx_extent extents[MAX_RANK];
  for (int i = 0; i < onnx_result_rank(onnx); i++) extents[i] = onnx_result_dim(onnx, i);
  onnx_ignore(onnx, "dims");
  onnx_result(onnx, 0, onnx_reshape(onnx, onnx_input(onnx, 0), extents, onnx_result_rank(onnx)));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_raw_input(hlo, 0));
}

static const struct op_kind kind = {
    .name = "reshape",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_VIEW,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = along,
    .sequence.incremental = incremental,
    .sequence.extents = "dims",
    .ranks.place = place,
    .gradient = gradient,
    .layout.view = view,
    .layout.unview = unview,
    .cost.flops = op_flops_none,
    .reference.evaluate = reference,
};

/* Puts what is left into the one extent of -1; false after an error. */
static bool complete(struct builder *builder, const struct value *x, struct shape *shape) {
  int open = -1;
  int64_t known = 1;
  for (int i = 0; i < shape->rank; i++) {
    if (shape->dim[i] != -1) {
      known *= shape->dim[i];
      continue;
    }
    if (open >= 0) {
      builder_error(builder, "reshape: only one extent can be -1");
      return false;
    }
    open = i;
  }
  if (open < 0) return true;
  if (shape_count(x->shape) % known != 0) {
    builder_error(builder, "reshape: x %s has %lld elements, which the other extents (%lld) do not divide",
                  shape_text(builder_arena(builder), x->shape), (long long)shape_count(x->shape), (long long)known);
    return false;
  }
  shape->dim[open] = shape_count(x->shape) / known;
  return true;
}

/* reshape_to(x, rank, extents…) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  struct value *x = op_tensor(arguments, 0);
  struct shape shape;
  if (!op_extents(builder, "reshape", arguments, count, 2, true, &shape)) return NULL;
  if (x == NULL || !complete(builder, x, &shape)) return NULL;
  return op_reshape(builder, x, shape);
}

const struct op_file op_file_reshape = {
    .name = "reshape",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"reshape_to", .build = build}, {0}},
};
