/* y[i] = x[0] + … + x[i] along an axis, or with `reverse` x[i] + … + x[n - 1]; dx is the same of dy the other way. */
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/lowered.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct op_block block = op_block(node->inputs[0]->shape, (int)node_int(node, "axis"));
  bool reverse = node_int(node, "reverse") != 0;
  for (int64_t o = 0; o < block.outer; o++)
    for (int64_t i = 0; i < block.inner; i++) {
      double sum = 0;
      for (int64_t e = 0; e < block.extent; e++) {
        int64_t index = (o * block.extent + (reverse ? block.extent - 1 - e : e)) * block.inner + i;
        outputs[0][index] = sum += inputs[0][index];
      }
    }
}

static struct value *cumsum(struct builder *builder, struct value *x, int64_t axis, int64_t reverse) {
  struct attribute attributes[] = {attribute_int("axis", axis), attribute_int("reverse", reverse)};
  return builder_op(builder, "cumsum", &x, 1, attributes, 2);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = cumsum(builder, dy[0], node_int(node, "axis"), !node_int(node, "reverse"));
}

/* The sum so far is cached. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  int axis = (int)node_int(node, "axis");
  if (node_int(node, "reverse") || !op_is_at(new->timelines[0], axis) || !dtype_is_float(new->inputs[0]->dtype))
    return NULL;
  struct value *cache = op_cache(builder, new, "sum", op_with_extent(new->inputs[0]->shape, axis, 1));
  struct value *inputs[] = {new->inputs[0], cache, new->at, new->valid};
  struct attribute attribute = attribute_int("axis", axis);
  new->timeline = new->timelines[0];
  return builder_op(builder, "cumsum_incremental", inputs, new->valid != NULL ? 4 : 3, &attribute, 1);
}

static void write_onnx(struct onnx *onnx) {
  const struct attribute reverse = attribute_int("reverse", onnx_int(onnx, "reverse") != 0);
  const char *inputs[] = {onnx_input(onnx, 0), onnx_whole(onnx, onnx_int(onnx, "axis"))};
  onnx_result(onnx, 0, onnx_op(onnx, "CumSum", inputs, 2, &reverse, 1));
}

static struct hlo lower_sums(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const struct hlo x = hlo_input(hlo, 0);
  const int axis = (int)node_int(node, "axis"), last = x.shape.rank - 1;
  const struct shape square = shape_of(2, x.shape.dim[axis], x.shape.dim[axis]);
  const struct hlo from = hlo_iota(hlo, square, 0, HLO_I32), to = hlo_iota(hlo, square, 1, HLO_I32);
  const bool reverse = strcmp(node->kind->name, "cumsum") == 0 && node_int(node, "reverse");
  const struct hlo counts = hlo_compare(hlo, reverse ? "GE" : "LE", from, to);
  const struct hlo sums = hlo_dot(hlo, hlo_exchange(hlo, x, axis, last), hlo_convert(hlo, counts, HLO_F32), 0, last, 0);
  return hlo_exchange(hlo, sums, axis, last);
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, lower_sums(hlo));
}

static const struct op_kind kind = {
    .name = "cumsum",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_like,
    .sequence.along = op_along_others,
    .sequence.incremental = incremental,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .reference.evaluate = reference,
};

/* ---- Over positions that follow on at[0] earlier ones, whose sum is `cache` ---- */

static int infer_incremental(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                             const char **error) {
  struct shape x = node->inputs[0]->shape, sum = op_with_extent(x, (int)node_int(node, "axis"), 1);
  if (!op_check_float(arena, node, 0, error) || !op_check_dtype(arena, node, 1, DTYPE_FLOAT32, error)) return 0;
  if (!op_check_shape(arena, node, 1, sum, "a sum along the axis", error) || !op_check_at(arena, node, 2, error))
    return 0;
  shapes[0] = x;
  shapes[1] = sum;
  dtypes[0] = node->inputs[0]->dtype;
  dtypes[1] = DTYPE_FLOAT32;
  return 2;
}

static void reference_incremental(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct op_block block = op_block(node->inputs[0]->shape, (int)node_int(node, "axis"));
  int64_t valid = op_valid(node, inputs, 3, block.extent);
  for (int64_t o = 0; o < block.outer; o++)
    for (int64_t i = 0; i < block.inner; i++) {
      double sum = inputs[2][0] > 0 ? inputs[1][o * block.inner + i] : 0;
      for (int64_t e = 0; e < block.extent; e++) {
        int64_t index = (o * block.extent + e) * block.inner + i;
        outputs[0][index] = sum += inputs[0][index];
        if (e + 1 == valid) outputs[1][o * block.inner + i] = sum;
      }
    }
}

static void lower_incremental(struct stablehlo *hlo) {
  const struct hlo before = op_lower_cached(hlo, hlo_input(hlo, 1), 2, hlo_number(0));
  const struct hlo y = hlo_add(hlo, lower_sums(hlo), before);
  hlo_result(hlo, 0, y);
  hlo_result(hlo, 1, op_lower_newest(hlo, y, (int)node_int(hlo_node(hlo), "axis"), 3));
}

static const struct op_kind kind_incremental = {
    .name = "cumsum_incremental",
    .lower.write = lower_incremental,
    .class = OP_KERNEL,
    .template_name = "cumsum",
    .input_names = {"x", "cache", "at", "valid"},
    .output_names = {"y", "next"},
    .infer = infer_incremental,
    .memory.assigns = {0, 2},
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
    .reference.evaluate = reference_incremental,
};

/* cumsum(x, axis) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  int axis = x != NULL ? op_axis(builder, "cumsum", x, &arguments[1]) : -1;
  return axis < 0 ? NULL : cumsum(builder, x, axis, 0);
}

const struct op_file op_file_cumsum = {
    .name = "cumsum",
    .kinds = (const struct op_kind *const[]){&kind, &kind_incremental, NULL},
    .functions = (const struct op_function[]){{"cumsum", .build = build}, {0}},
};
