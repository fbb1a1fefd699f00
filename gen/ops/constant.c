/* y = value in every position of the shape `dims`. */
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  (void)arena;
  (void)error;
  return op_result(shapes, dtypes, node_ints(node, "dims"), DTYPE_FLOAT32);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  (void)inputs;
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++) outputs[0][i] = node_real(node, "value");
}

static struct mean mean(const struct node *node, const struct mean *inputs) {
  (void)node;
  (void)inputs;
  return (struct mean){.form = MEAN_SAME};
}

/* The same in every part. */
static bool place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  (void)node;
  (void)seed;
  (void)ranks;
  (void)placements;
  return true;
}

static void shorten(struct node *node, const struct placement *placements, int64_t ranks) {
  for (int i = 0; i < node->n_attributes; i++)
    if (strcmp(node->attributes[i].name, "dims") == 0)
      node->attributes[i].ints = placement_part(placements[0], node->attributes[i].ints, ranks);
}

static void write_onnx(struct onnx *onnx) {
  struct onnx_extent extents[MAX_RANK];
  for (int i = 0; i < onnx_result_rank(onnx); i++) extents[i] = onnx_result_dim(onnx, i);
  const char *shape = onnx_shape(onnx, extents, onnx_result_rank(onnx));
  onnx_ignore(onnx, "dims");
  onnx_result(onnx, 0, onnx_binary(onnx, "Expand", onnx_real_tensor(onnx, "value"), shape));
}

static void lower(struct stablehlo *hlo) {
  hlo_result(hlo, 0, hlo_number(node_real(hlo_node(hlo), "value")));
}

static const struct op_kind kind = {
    .name = "constant",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_ELEMENTWISE,
    .output_names = {"y"},
    .infer = infer,
    .ranks.place = place,
    .ranks.shorten = shorten,
    .cost.flops = op_flops_none,
    .evaluation.mean = mean,
    .reference.evaluate = reference,
};

/* constant_of(value, rank, extents…) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  struct shape shape;
  if (!op_extents(builder, "constant", arguments, count, 2, false, &shape)) return NULL;
  return op_constant(builder, arguments[0].real, shape);
}

const struct op_file op_file_constant = {
    .name = "constant",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"constant_of", .build = build}, {0}},
};
