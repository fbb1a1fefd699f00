/* Collectives between a tensor of which each rank has a part and one that is whole on each, and what makes their
 * gradients (Korthikanti et al., arXiv:2205.05198, section 4.2.2: the conjugate operators g and g-bar). `axis` is an
 * enum axis along which there are `ranks` ranks; `dim` is the dimension that is split, in `blocks` (placement.h).
 *
 * reduce_scatter: y = a rank's part of the sum of x over the ranks, whose x are partial sums: dx = all_gather(dy).
 * Output 1 is workspace.
 * all_gather: y = the ranks' parts x, one after the other. With `partial`, each rank uses y for its part of the work,
 * so that dy are partial sums: dx = reduce_scatter(dy). Without, all ranks do the same with y: dx = part_of(dy). With
 * `remade` the backward gathers again what it uses of y.
 * part_of: y = a rank's part of x, which is the same on all ranks: dx = all_gather(dy). With `partial`, what is made of
 * x has gradients that add up over the ranks: dx = part_in_zeros(dy), which is dy in the rank's part and 0 elsewhere.
 * With `balanced`, which is 0 elsewhere, a rank's part is no range: of twice as many chunks as there are ranks, the one
 * of its number and the one as far from the end (Grattafiori et al., arXiv:2407.21783, section 3.3.2). */
#include <string.h>

#include "gen/ops/support/support.h"

/* ---- Shapes ---- */

static struct op_block block_of(const struct node *node) {
  return op_block(node->inputs[0]->shape, (int)node_int(node, "dim"));
}

static bool check(struct arena *arena, const struct node *node, bool parts, const char **error) {
  const struct shape shape = node->inputs[0]->shape;
  int64_t dim = node_int(node, "dim"), ranks = node_int(node, "ranks");
  int64_t parts_of_dim = node_int(node, "blocks") * (parts ? 1 : ranks);
  if (dim >= 0 && dim < shape.rank && shape.dim[dim] % parts_of_dim == 0) return true;
  op_fail(arena, node, error, "%s has no %lld equal parts along dimension %lld", op_operand_text(arena, node, 0),
          (long long)ranks, (long long)dim);
  return false;
}

static struct shape part_shape(const struct node *node) {
  int dim = (int)node_int(node, "dim");
  const struct shape shape = node->inputs[0]->shape;
  return op_with_extent(shape, dim, shape.dim[dim] / node_int(node, "ranks"));
}

static int infer_gather(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                        const char **error) {
  int dim = (int)node_int(node, "dim");
  const struct shape shape = node->inputs[0]->shape;
  if (!check(arena, node, true, error)) return 0;
  return op_result(shapes, dtypes, op_with_extent(shape, dim, shape.dim[dim] * node_int(node, "ranks")),
                   node->inputs[0]->dtype);
}

static int infer_part(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error) {
  if (!check(arena, node, false, error)) return 0;
  return op_result(shapes, dtypes, part_shape(node), node->inputs[0]->dtype);
}

static int infer_scatter(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                         const char **error) {
  if (!op_check_float(arena, node, 0, error) || !check(arena, node, false, error)) return 0;
  shapes[0] = part_shape(node);
  shapes[1] = node->inputs[0]->shape;
  dtypes[0] = dtypes[1] = node->inputs[0]->dtype;
  return 2;
}

/* ---- Of one rank ---- */

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  memcpy(outputs[0], inputs[0], (size_t)shape_count(node->outputs[0]->shape) * sizeof(double));
}

/* Other dimensions than that which is split are the output's own. */
static int along(const struct node *node, int axis, int input) {
  (void)input;
  return axis == node_int(node, "dim") ? AXIS_MIXED : axis;
}

/* ---- Gradients ---- */

static struct value *exchanged_by(struct builder *builder, const char *kind, const struct node *node, struct value *x,
                                  bool partial) {
  return op_exchange_parts(builder, kind, x,
                           (struct op_parts){.axis = node_int(node, "axis"),
                                             .ranks = node_int(node, "ranks"),
                                             .dim = (int)node_int(node, "dim"),
                                             .blocks = node_int(node, "blocks"),
                                             .partial = partial,
                                             .remade = true});
}

static void gradient_of_gather(struct builder *builder, const struct node *node, struct value *const *dy,
                               struct value **dx) {
  dx[0] = exchanged_by(builder, node_int(node, "partial") ? "reduce_scatter" : "part_of", node, dy[0], false);
}

/* Nothing has a gradient of that: as the forward, so that one kernel is both. */
static void gradient_by_gathering(struct builder *builder, const struct node *node, struct value *const *dy,
                                  struct value **dx) {
  dx[0] = exchanged_by(builder, "all_gather", node, dy[0], true);
}

static void gradient_of_part(struct builder *builder, const struct node *node, struct value *const *dy,
                             struct value **dx) {
  if (node_int(node, "partial"))
    dx[0] = builder_op(builder, "part_in_zeros", dy, 1, node->attributes, node->n_attributes);
  else
    gradient_by_gathering(builder, node, dy, dx);
}

/* ---- What ranks exchange ---- */

static struct op_exchange gathered(const struct node *node) {
  return (struct op_exchange){.form = EXCHANGE_ALL_GATHER,
                              .what = "parts",
                              .count = shape_count(node->outputs[0]->shape),
                              .dtype = node->outputs[0]->dtype,
                              .axis = (int)node_int(node, "axis")};
}

static struct op_exchange scattered(const struct node *node) {
  return (struct op_exchange){.form = EXCHANGE_REDUCE_SCATTER,
                              .what = "partial sums",
                              .count = shape_count(node->inputs[0]->shape),
                              .dtype = node->outputs[0]->dtype,
                              .axis = (int)node_int(node, "axis")};
}

static double sums(const struct node *node) {
  const struct op_block block = block_of(node);
  return (double)(block.outer * block.extent * block.inner);
}

static int axis_of(const struct node *node) {
  return (int)node_int(node, "axis");
}

static bool is_remade(const struct node *node) {
  return node_int(node, "remade") != 0;
}

static const struct op_kind kind_all_gather = {
    .name = "all_gather",
    .class = OP_KERNEL,
    .template_name = "collectives",
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer_gather,
    .sequence.along = along,
    .gradient = gradient_of_gather,
    .memory.remade = is_remade,
    .cost.flops = op_flops_none,
    .ranks.exchanged = gathered,
    .reference.evaluate = reference,
};

static const struct op_kind kind_reduce_scatter = {
    .name = "reduce_scatter",
    .class = OP_KERNEL,
    .template_name = "collectives",
    .input_names = {"x"},
    .output_names = {"y", "work"},
    .infer = infer_scatter,
    .sequence.along = along,
    .gradient = gradient_by_gathering,
    .memory.workspace = 1u << 1,
    .cost.flops = sums,
    .ranks.exchanged = scattered,
    .reference.evaluate = reference,
};

static const struct op_kind kind_part_of = {
    .name = "part_of",
    .class = OP_KERNEL,
    .template_name = "parts",
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer_part,
    .sequence.along = along,
    .gradient = gradient_of_part,
    .index.moves = true,
    .cost.flops = op_flops_none,
    .ranks.part_axis = axis_of,
    .reference.evaluate = reference,
};

static const struct op_kind kind_part_in_zeros = {
    .name = "part_in_zeros",
    .class = OP_KERNEL,
    .template_name = "parts",
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer_gather,
    .sequence.along = along,
    .cost.flops = op_flops_none,
    .ranks.part_axis = axis_of,
    .reference.evaluate = reference,
};

const struct op_file op_file_all_gather = {
    .name = "all_gather",
    .kinds = (const struct op_kind *const[]){&kind_all_gather, &kind_reduce_scatter, &kind_part_of, &kind_part_in_zeros,
                                             NULL},
};
