/* y = x with its dimensions a and b exchanged; dx = dy with them exchanged. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static void exchange(int64_t *list, const struct node *node) {
  int64_t a = node_int(node, "a"), b = node_int(node, "b"), kept = list[a];
  list[a] = list[b];
  list[b] = kept;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape shape = node->inputs[0]->shape;
  int64_t a = node_int(node, "a"), b = node_int(node, "b");
  if (a < 0 || b < 0 || a >= shape.rank || b >= shape.rank)
    return op_fail(arena, node, error, "%s has no axes %lld and %lld", op_operand_text(arena, node, 0), (long long)a,
                   (long long)b);
  exchange(shape.dim, node);
  return op_result(shapes, dtypes, shape, node->inputs[0]->dtype);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct shape shape = node->outputs[0]->shape;
  int64_t strides[MAX_RANK];
  shape_dense_strides(node->inputs[0]->shape, strides);
  exchange(strides, node);
  for (int64_t i = 0; i < shape_count(shape); i++) {
    int64_t rest = i, index = 0;
    for (int d = shape.rank - 1; d >= 0; d--) {
      index += rest % shape.dim[d] * strides[d];
      rest /= shape.dim[d];
    }
    outputs[0][i] = inputs[0][index];
  }
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_transpose(builder, dy[0], (int)node_int(node, "a"), (int)node_int(node, "b"));
}

static bool unview(const struct node *node, const int64_t *out_strides, int64_t *in_strides) {
  for (int i = 0; i < node->outputs[0]->shape.rank; i++) in_strides[i] = out_strides[i];
  exchange(in_strides, node);
  return true;
}

static bool view(const struct node *node, const int64_t *in_strides, int64_t *offset, int64_t *out_strides) {
  *offset = 0;
  return unview(node, in_strides, out_strides); /* an exchange undoes itself */
}

static int along(const struct node *node, int axis, int input) {
  (void)input;
  int a = (int)node_int(node, "a"), b = (int)node_int(node, "b");
  return axis == a ? b : axis == b ? a : axis;
}

static void write_onnx(struct onnx *onnx) {
  const int a = (int)onnx_int(onnx, "a"), b = (int)onnx_int(onnx, "b");
  onnx_result(onnx, 0, onnx_exchange(onnx, onnx_input(onnx, 0), onnx_rank(onnx, 0), a, b));
}

static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  hlo_result(hlo, 0, hlo_exchange(hlo, hlo_raw_input(hlo, 0), (int)node_int(node, "a"), (int)node_int(node, "b")));
}

static const struct op_kind kind = {
    .name = "transpose",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_VIEW,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = along,
    .gradient = gradient,
    .layout.view = view,
    .layout.unview = unview,
    .ranks.pads = true,
    .cost.flops = op_flops_none,
    .reference.evaluate = reference,
};

/* transpose(x, a, b) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  if (x == NULL) return NULL;
  int a = op_axis(builder, "transpose", x, &arguments[1]), b = op_axis(builder, "transpose", x, &arguments[2]);
  return a < 0 || b < 0 ? NULL : op_transpose(builder, x, a, b);
}

const struct op_file op_file_transpose = {
    .name = "transpose",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"transpose", .build = build}, {0}},
};
