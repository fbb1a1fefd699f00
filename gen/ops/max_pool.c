/* The largest of each window of x [N][C][H][W]: y[n][c][i][j] = max over k, l of x[n][c][i s - p + k][j s - p + l]. The
 * first of the largest gets the whole gradient, as in PyTorch; backward looks for it again. */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

struct window {
  int64_t kernel[2], stride[2], padding[2];
};

static struct window window_of(const struct node *node) {
  struct window window;
  for (int i = 0; i < 2; i++) {
    window.kernel[i] = node_ints(node, "kernel").dim[i];
    window.stride[i] = node_ints(node, "stride").dim[i];
    window.padding[i] = node_ints(node, "padding").dim[i];
  }
  return window;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct window window = window_of(node);
  struct shape y = node->inputs[0]->shape;
  if (!op_check_float(arena, node, 0, error)) return 0;
  for (int i = 0; i < 2; i++) {
    int64_t left = y.dim[2 + i] + 2 * window.padding[i] - window.kernel[i];
    bool good = window.kernel[i] >= 1 && window.stride[i] >= 1 && window.padding[i] >= 0 && left >= 0;
    if (!good || 2 * window.padding[i] > window.kernel[i])
      return op_fail(arena, node, error,
                     "a window of %lld by a stride of %lld with padding %lld does not fit on %s; padding is at most "
                     "half of the window",
                     (long long)window.kernel[i], (long long)window.stride[i], (long long)window.padding[i],
                     op_operand_text(arena, node, 0));
    y.dim[2 + i] = left / window.stride[i] + 1;
  }
  return op_result(shapes, dtypes, y, node->inputs[0]->dtype);
}

/* The position of the first of the largest elements that window (i, j) of a plane sees. */
static int64_t largest(const struct window *window, struct shape x, const double *plane, int64_t i, int64_t j) {
  int64_t found = -1;
  for (int64_t k = 0; k < window->kernel[0]; k++)
    for (int64_t l = 0; l < window->kernel[1]; l++) {
      int64_t row = i * window->stride[0] - window->padding[0] + k;
      int64_t column = j * window->stride[1] - window->padding[1] + l, at = row * x.dim[3] + column;
      if (row < 0 || row >= x.dim[2] || column < 0 || column >= x.dim[3]) continue;
      if (found < 0 || plane[at] > plane[found]) found = at;
    }
  return found;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct shape x = node->inputs[0]->shape, y = node->outputs[0]->shape;
  struct window window = window_of(node);
  int64_t size = x.dim[2] * x.dim[3], at = 0;
  for (int64_t p = 0; p < x.dim[0] * x.dim[1]; p++)
    for (int64_t i = 0; i < y.dim[2]; i++)
      for (int64_t j = 0; j < y.dim[3]; j++)
        outputs[0][at++] = inputs[0][p * size + largest(&window, x, inputs[0] + p * size, i, j)];
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[] = {dy[0], node->inputs[0]};
  dx[0] = builder_op(builder, "max_pool_backward", inputs, 2, node->attributes, node->n_attributes);
}

static double flops(const struct node *node) {
  struct window window = window_of(node);
  return (double)shape_count(node->outputs[0]->shape) * (double)window.kernel[0] * (double)window.kernel[1];
}

static void write_onnx(struct onnx *onnx) {
  const struct shape padding = onnx_ints(onnx, "padding");
  const struct attribute attributes[] = {
      attribute_ints("kernel_shape", onnx_ints(onnx, "kernel")), attribute_ints("strides", onnx_ints(onnx, "stride")),
      attribute_ints("pads", shape_of(4, padding.dim[0], padding.dim[1], padding.dim[0], padding.dim[1]))};
  const char *x = onnx_input(onnx, 0);
  onnx_result(onnx, 0, onnx_op(onnx, "MaxPool", &x, 1, attributes, 3));
}

static struct hlo_windows lowered(const struct node *node) {
  const struct window window = window_of(node);
  struct hlo_windows windows;
  for (int i = 0; i < 2; i++) {
    windows.size[i] = window.kernel[i];
    windows.step[i] = window.stride[i];
    windows.padding[i] = window.padding[i];
  }
  return windows;
}

static void lower(struct stablehlo *hlo) {
  const struct hlo_windows windows = lowered(hlo_node(hlo));
  hlo_result(hlo, 0, hlo_window_max(hlo, hlo_input(hlo, 0), &windows, hlo_node(hlo)->outputs[0]->shape));
}

static const struct op_kind kind = {
    .name = "max_pool",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_AS_IS},
    .cost.flops = flops,
    .reference.evaluate = reference,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[1]->shape, node->inputs[1]->dtype);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct shape x = node->inputs[1]->shape, y = node->inputs[0]->shape;
  struct window window = window_of(node);
  int64_t size = x.dim[2] * x.dim[3], at = 0;
  for (int64_t i = 0; i < shape_count(x); i++) outputs[0][i] = 0;
  for (int64_t p = 0; p < x.dim[0] * x.dim[1]; p++)
    for (int64_t i = 0; i < y.dim[2]; i++)
      for (int64_t j = 0; j < y.dim[3]; j++)
        outputs[0][p * size + largest(&window, x, inputs[1] + p * size, i, j)] += inputs[0][at++];
}

static double flops_backward(const struct node *node) {
  struct window window = window_of(node);
  return (double)shape_count(node->inputs[0]->shape) * (double)window.kernel[0] * (double)window.kernel[1];
}

static void lower_backward(struct stablehlo *hlo) {
  const struct hlo_windows windows = lowered(hlo_node(hlo));
  hlo_result(hlo, 0, hlo_window_max_backward(hlo, hlo_input(hlo, 0), hlo_input(hlo, 1), &windows));
}

static const struct op_kind kind_backward = {
    .name = "max_pool_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .template_name = "max_pool",
    .input_names = {"dy", "x"},
    .output_names = {"dx"},
    .infer = infer_backward,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_AS_IS},
    .cost.flops = flops_backward,
    .reference.evaluate = reference_backward,
};

/* ---- Functions: x, kernel, stride, padding ---- */

static struct value *max_pool(struct builder *builder, const char *function, const struct argument *arguments,
                              int rank) {
  struct value *x = op_tensor(arguments, 0);
  int64_t kernel = arguments[1].integer, stride = arguments[2].integer, padding = arguments[3].integer;
  if (x == NULL) return NULL;
  if (x->shape.rank != rank + 2) {
    builder_error(builder, "%s: x %s must be %s", function, shape_text(builder_arena(builder), x->shape),
                  rank == 2 ? "[batch][channels][height][width]" : "[batch][channels][length]");
    return NULL;
  }
  struct shape given = x->shape;
  if (rank == 1) x = op_reshape(builder, x, shape_of(4, given.dim[0], given.dim[1], (int64_t)1, given.dim[2]));
  int64_t one = 1, none = 0;
  struct attribute attributes[] = {attribute_ints("kernel", shape_of(2, rank == 2 ? kernel : one, kernel)),
                                   attribute_ints("stride", shape_of(2, rank == 2 ? stride : one, stride)),
                                   attribute_ints("padding", shape_of(2, rank == 2 ? padding : none, padding))};
  struct value *y = builder_op(builder, "max_pool", &x, 1, attributes, 3);
  if (y == NULL || rank == 2) return y;
  return op_reshape(builder, y, shape_of(3, given.dim[0], given.dim[1], y->shape.dim[3]));
}

static struct value *build_1d(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return max_pool(builder, "max_pool1d", arguments, 1);
}

static struct value *build_2d(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return max_pool(builder, "max_pool2d", arguments, 2);
}

const struct op_file op_file_max_pool = {
    .name = "max_pool",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions =
        (const struct op_function[]){{"max_pool1d", .build = build_1d}, {"max_pool2d", .build = build_2d}, {0}},
};
