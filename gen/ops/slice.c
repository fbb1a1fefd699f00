/* y = x[start .. start + count) along an axis; dx = dy there and zero around it. */
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape shape = node->inputs[0]->shape;
  int64_t axis = node_int(node, "axis"), start = node_int(node, "start"), count = node_int(node, "count");
  if (axis < 0 || axis >= shape.rank)
    return op_fail(arena, node, error, "%s has no axis %lld", op_operand_text(arena, node, 0), (long long)axis);
  if (start < 0 || count < 1 || start + count > shape.dim[axis])
    return op_fail(arena, node, error, "%s has no positions %lld to %lld along axis %lld",
                   op_operand_text(arena, node, 0), (long long)start, (long long)(start + count - 1), (long long)axis);
  return op_result(shapes, dtypes, op_with_extent(shape, (int)axis, count), node->inputs[0]->dtype);
}

/* The part of `whole` along the axis that starts at `start`, copied out of it, or into it. */
static void copy_part(double *whole, double *part, struct op_block all, int64_t start, int64_t count, bool into) {
  for (int64_t o = 0; o < all.outer; o++) {
    double *there = whole + (o * all.extent + start) * all.inner, *here = part + o * count * all.inner;
    size_t size = (size_t)(count * all.inner) * sizeof(double);
    if (into)
      memcpy(there, here, size);
    else
      memcpy(here, there, size);
  }
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct op_block all = op_block(node->inputs[0]->shape, (int)node_int(node, "axis"));
  copy_part((double *)inputs[0], outputs[0], all, node_int(node, "start"), node_int(node, "count"), false);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  int64_t axis = node_int(node, "axis");
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("start", node_int(node, "start")),
                                   attribute_int("size", node->inputs[0]->shape.dim[axis])};
  dx[0] = builder_op(builder, "slice_backward", dy, 1, attributes, 3);
}

static bool view(const struct node *node, const int64_t *in_strides, int64_t *offset, int64_t *out_strides) {
  for (int i = 0; i < node->inputs[0]->shape.rank; i++) out_strides[i] = in_strides[i];
  *offset = node_int(node, "start") * in_strides[node_int(node, "axis")];
  return true;
}

/* The result is a part of the input, so where the result is does not say where the rest is. */
static bool unview(const struct node *node, const int64_t *out_strides, int64_t *in_strides) {
  (void)node;
  (void)out_strides;
  (void)in_strides;
  return false;
}

/* Along the axis y has some of x's blocks. */
static bool place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const struct placement split = placements[seed];
  int64_t axis = node_int(node, "axis"), start = node_int(node, "start"), count = node_int(node, "count");
  int64_t extent = node->inputs[0]->shape.dim[axis], block = (seed == 0 ? extent : count) / split.blocks;
  (void)ranks;
  placements[0] = placements[1] = split;
  if (split.dim != axis) return true;
  if (extent % block != 0 || start % block != 0 || count % block != 0) return false;
  placements[0].blocks = extent / block;
  placements[1].blocks = count / block;
  return true;
}

static void shorten(struct node *node, const struct placement *placements, int64_t ranks) {
  for (int i = 0; i < node->n_attributes && placements[0].dim == node_int(node, "axis"); i++)
    if (strcmp(node->attributes[i].name, "axis") != 0) node->attributes[i].integer /= ranks;
}

/* Positions that end no later than the newest one; the positions before it are there as far as the input has them. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  const struct timeline timeline = new->timelines[0];
  if (!op_is_plain(timeline)) return NULL;
  int64_t start = node_int(node, "start"), before = node_int(node, "count") - new->most,
          there = timeline.before - start;
  if (before < 0 || there < 0) return NULL;
  if (before > there) before = there;
  new->timeline = (struct timeline){.axis = timeline.axis, .before = (int)before};
  int64_t width = new->inputs[0]->shape.dim[timeline.axis] - timeline.before;
  return op_slice(builder, new->inputs[0], timeline.axis, start, width + before);
}

static void write_onnx(struct onnx *onnx) {
  const struct onnx_extent start = onnx_int_extent(onnx, "start"), count = onnx_int_extent(onnx, "count");
  onnx_result(onnx, 0,
              onnx_slice(onnx, onnx_input(onnx, 0), (int)onnx_int(onnx, "axis"), start, onnx_plus(start, count)));
}

static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  hlo_result(hlo, 0,
             hlo_slice(hlo, hlo_raw_input(hlo, 0), (int)node_int(node, "axis"), node_int(node, "start"),
                       node_int(node, "count")));
}

static const struct op_kind kind = {
    .name = "slice",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_VIEW,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = op_along_others,
    .sequence.incremental = incremental,
    .ranks.place = place,
    .ranks.shorten = shorten,
    .gradient = gradient,
    .layout.view = view,
    .layout.unview = unview,
    .cost.flops = op_flops_none,
    .reference.evaluate = reference,
};

/* ---- Backward: dx [.., size, ..] is dy from `start` on, zero elsewhere ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (node->inputs[0]->dtype != DTYPE_INT32 && !op_check_float(arena, node, 0, error)) return 0;
  struct shape shape = op_with_extent(node->inputs[0]->shape, (int)node_int(node, "axis"), node_int(node, "size"));
  return op_result(shapes, dtypes, shape, node->inputs[0]->dtype);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  int axis = (int)node_int(node, "axis");
  struct shape shape = node->outputs[0]->shape;
  memset(outputs[0], 0, (size_t)shape_count(shape) * sizeof(double));
  copy_part(outputs[0], (double *)inputs[0], op_block(shape, axis), node_int(node, "start"),
            node->inputs[0]->shape.dim[axis], true);
}

/* The parts in the order in which they are along the axis. */
static void sort_parts(const struct node **parts, int n) {
  for (int i = 1; i < n; i++)
    for (int k = i; k > 0 && node_int(parts[k], "start") < node_int(parts[k - 1], "start"); k--) {
      const struct node *kept = parts[k];
      parts[k] = parts[k - 1];
      parts[k - 1] = kept;
    }
}

/* Parts that tile the axis are concatenated: the gradient of something that was split. */
static struct value *sum_backward(struct builder *builder, struct value *const *contributions, int n) {
  const struct node **parts = arena_alloc(builder_arena(builder), (size_t)n * sizeof *parts);
  struct value **inputs = arena_alloc(builder_arena(builder), (size_t)n * sizeof *inputs);
  for (int i = 0; i < n; i++) parts[i] = contributions[i]->producer;
  sort_parts(parts, n);
  int64_t axis = node_int(parts[0], "axis"), reached = 0;
  for (int i = 0; i < n; i++) {
    if (node_int(parts[i], "axis") != axis || node_int(parts[i], "start") != reached) return NULL;
    inputs[i] = parts[i]->inputs[0];
    reached += inputs[i]->shape.dim[axis];
  }
  if (reached != node_int(parts[0], "size")) return NULL;
  struct attribute attribute = attribute_int("axis", axis);
  return builder_op(builder, "concat", inputs, n, &attribute, 1);
}

static void gradient_backward(struct builder *builder, const struct node *node, struct value *const *dy,
                              struct value **dx) {
  int axis = (int)node_int(node, "axis");
  dx[0] = op_slice(builder, dy[0], axis, node_int(node, "start"), node->inputs[0]->shape.dim[axis]);
}

/* Zeros are before the first position; those after the last one come to an end that is not there yet. */
static struct value *incremental_backward(struct builder *builder, const struct node *node, struct new_positions *new) {
  int64_t start = node_int(node, "start");
  new->timeline = new->timelines[0];
  if (!op_is_plain(new->timeline)) return NULL;
  return start == 0 ? new->inputs[0] : op_conv_cache(builder, new, 0, start, NULL);
}

static bool part_backward(const struct node *node, int index, const int64_t *out_strides, int64_t *offset,
                          int64_t *in_strides) {
  (void)index;
  for (int i = 0; i < node->outputs[0]->shape.rank; i++) in_strides[i] = out_strides[i];
  *offset = node_int(node, "start") * out_strides[node_int(node, "axis")];
  return true;
}

/* It is also a function of accel/model.h that pads. */
static void write_backward(struct onnx *onnx) {
  const int along = (int)onnx_int(onnx, "axis");
  const struct onnx_extent axis = onnx_fixed(along), start = onnx_int_extent(onnx, "start");
  const struct onnx_extent before = onnx_plus(start, onnx_dim(onnx, 0, along)), size = onnx_int_extent(onnx, "size");
  const struct onnx_extent pads[] = {start, onnx_plus(size, onnx_times(before, -1))};
  const char *inputs[] = {onnx_input(onnx, 0), onnx_shape(onnx, pads, 2), onnx_float(onnx, 0),
                          onnx_shape(onnx, &axis, 1)};
  onnx_result(onnx, 0, onnx_op(onnx, "Pad", inputs, 4, NULL, 0));
}

static void lower_backward(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const struct hlo dy = hlo_raw_input(hlo, 0);
  const int axis = (int)node_int(node, "axis");
  const int64_t before = node_int(node, "start"), after = node_int(node, "size") - before - dy.shape.dim[axis];
  hlo_result(hlo, 0, hlo_pad(hlo, dy, axis, before, after, 0));
}

static const struct op_kind kind_backward = {
    .name = "slice_backward",
    .lower.write = lower_backward,
    .onnx.write = write_backward,
    .class = OP_KERNEL,
    .input_names = {"dy"},
    .output_names = {"dx"},
    .infer = infer_backward,
    .sequence.along = op_along_others,
    .sequence.incremental = incremental_backward,
    .gradient = gradient_backward,
    .sum = sum_backward,
    .layout.part = part_backward,
    .cost.flops = op_flops_none,
    .reference.evaluate = reference_backward,
};

/* ---- Functions ---- */

/* split(x, axis, parts, which) */
static struct value *build_split(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  if (x == NULL) return NULL;
  int axis = op_axis(builder, "split", x, &arguments[1]);
  if (axis < 0) return NULL;
  int64_t parts = arguments[2].integer, which = arguments[3].integer, extent = x->shape.dim[axis];
  if (parts < 1 || extent % parts != 0) {
    builder_error(builder, "split: %lld parts do not divide axis %d of %s", (long long)parts, axis,
                  shape_text(builder_arena(builder), x->shape));
    return NULL;
  }
  if (which < 0 || which >= parts) {
    builder_error(builder, "split: part %lld of %lld; parts count from 0", (long long)which, (long long)parts);
    return NULL;
  }
  return parts == 1 ? x : op_slice(builder, x, axis, which * (extent / parts), extent / parts);
}

/* slice(x, axis, start, count) */
static struct value *build_slice(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  if (x == NULL) return NULL;
  int axis = op_axis(builder, "slice", x, &arguments[1]);
  if (axis < 0) return NULL;
  if (arguments[2].integer == 0 && arguments[3].integer == x->shape.dim[axis]) return x;
  return op_slice(builder, x, axis, arguments[2].integer, arguments[3].integer);
}

/* pad(x, axis, before, after): zeros around it */
static struct value *build_pad(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  if (x == NULL) return NULL;
  int axis = op_axis(builder, "pad", x, &arguments[1]);
  if (axis < 0) return NULL;
  int64_t before = arguments[2].integer, after = arguments[3].integer;
  if (before < 0 || after < 0) {
    builder_error(builder, "pad: %lld and %lld positions; slice takes positions away", (long long)before,
                  (long long)after);
    return NULL;
  }
  return op_pad(builder, x, axis, before, after);
}

const struct op_file op_file_slice = {
    .name = "slice",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions =
        (const struct op_function[]){
            {"split", .build = build_split}, {"slice", .build = build_slice}, {"pad", .build = build_pad}, {0}},
};
