/* y = the positions of x along an axis after the n before them, which `cache` [.., n, ..] holds, as causal convolutions
 * need. If at[0], the position of the first new one, is 0, these are zeros or, of conv_cache_from, `first`. `next` is
 * the last n of y up to the last new position that is valid. */
#include <string.h>

#include "gen/ops/support/lowered.h"
#include "gen/ops/support/support.h"

static int infer_from(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes, int at,
                      const char **error) {
  struct shape x = node->inputs[0]->shape, cache = node->inputs[1]->shape;
  int axis = (int)node_int(node, "axis");
  if (!op_check_float(arena, node, 0, error) || !op_check_dtype(arena, node, 1, DTYPE_FLOAT32, error)) return 0;
  if (!op_check_shape(arena, node, 1, op_with_extent(x, axis, cache.dim[axis]), "like x but for the positions", error))
    return 0;
  if (!op_check_at(arena, node, at, error)) return 0;
  shapes[0] = op_with_extent(x, axis, cache.dim[axis] + x.dim[axis]);
  shapes[1] = cache;
  dtypes[0] = node->inputs[0]->dtype;
  dtypes[1] = DTYPE_FLOAT32;
  return 2;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  return infer_from(arena, node, shapes, dtypes, 2, error);
}

static int infer_with_first(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                            const char **error) {
  if (!op_check_shape(arena, node, 2, node->inputs[1]->shape, "like the cache", error)) return 0;
  return infer_from(arena, node, shapes, dtypes, 3, error);
}

/* before: the positions before x; NULL: zeros. */
static void follow(const struct node *node, const double *before, int64_t valid, const double *x_data,
                   double *const *outputs) {
  int axis = (int)node_int(node, "axis");
  struct op_block x = op_block(node->inputs[0]->shape, axis), cache = op_block(node->inputs[1]->shape, axis);
  int64_t n = cache.extent * cache.inner, new = x.extent *x.inner;
  for (int64_t o = 0; o < x.outer; o++) {
    double *y = outputs[0] + o * (n + new);
    for (int64_t i = 0; i < n; i++) y[i] = before != NULL ? before[o * n + i] : 0;
    memcpy(y + n, x_data + o * new, (size_t)new * sizeof *y);
    memcpy(outputs[1] + o * n, y + valid * x.inner, (size_t)n * sizeof *y);
  }
}

static int64_t valid_of(const struct node *node, const double *const *inputs, int index) {
  return op_valid(node, inputs, index, node->inputs[0]->shape.dim[node_int(node, "axis")]);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  follow(node, inputs[2][0] > 0 ? inputs[1] : NULL, valid_of(node, inputs, 3), inputs[0], outputs);
}

static void reference_with_first(const struct node *node, const double *const *inputs, double *const *outputs) {
  follow(node, inputs[3][0] > 0 ? inputs[1] : inputs[2], valid_of(node, inputs, 4), inputs[0], outputs);
}

/* before: what comes before x. */
static void lower_after(struct stablehlo *hlo, struct hlo before, int valid) {
  const struct node *node = hlo_node(hlo);
  const int axis = (int)node_int(node, "axis");
  const int64_t count = before.shape.dim[axis];
  const struct hlo parts[] = {before, hlo_input(hlo, 0)}, y = hlo_concat(hlo, parts, 2, axis);
  hlo_result(hlo, 0, y);
  hlo_result(hlo, 1,
             node->n_inputs > valid ? hlo_slice_at(hlo, y, axis, op_lower_number(hlo, valid), count)
                                    : hlo_slice(hlo, y, axis, y.shape.dim[axis] - count, count));
}

static void lower(struct stablehlo *hlo) {
  lower_after(hlo, op_lower_cached(hlo, hlo_input(hlo, 1), 2, hlo_number(0)), 3);
}

static void lower_from(struct stablehlo *hlo) {
  lower_after(hlo, op_lower_cached(hlo, hlo_input(hlo, 1), 3, hlo_input(hlo, 2)), 4);
}

static const struct op_kind kind = {
    .name = "conv_cache",
    .lower.write = lower,
    .class = OP_KERNEL,
    .input_names = {"x", "cache", "at", "valid"},
    .output_names = {"y", "next"},
    .infer = infer,
    .memory.assigns = {0, 2},
    .cost.flops = op_flops_none,
    .reference.evaluate = reference,
};

static const struct op_kind kind_from = {
    .name = "conv_cache_from",
    .lower.write = lower_from,
    .class = OP_KERNEL,
    .template_name = "conv_cache",
    .input_names = {"x", "cache", "first", "at", "valid"},
    .output_names = {"y", "next"},
    .infer = infer_with_first,
    .memory.assigns = {0, 2},
    .cost.flops = op_flops_none,
    .reference.evaluate = reference_with_first,
};

const struct op_file op_file_conv_cache = {
    .name = "conv_cache",
    .kinds = (const struct op_kind *const[]){&kind, &kind_from, NULL},
};
