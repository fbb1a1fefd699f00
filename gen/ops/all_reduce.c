/* Collectives along an axis of the mesh, and what makes their gradients (Shoeybi et al., "Megatron-LM",
 * arXiv:1909.08053, section 3: the conjugate operators f and g). `axis` is an enum axis.
 *
 * all_reduce: y = the sum of x over the ranks, whose x are partial sums. What follows is the same on all of them, so
 * that dx = dy.
 * replicate: y = x, which is the same on all ranks and of which each uses y for its part of the work: dx = the sum of
 * dy over the ranks. */
#include <string.h>

#include "gen/ops/support/support.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error)) return 0;
  return op_result(shapes, dtypes, node->inputs[0]->shape, node->inputs[0]->dtype);
}

/* Of one rank. */
static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  memcpy(outputs[0], inputs[0], (size_t)shape_count(node->outputs[0]->shape) * sizeof(double));
}

static int along(const struct node *node, int axis, int input) {
  (void)node;
  (void)input;
  return axis;
}

static void gradient_of_all_reduce(struct builder *builder, const struct node *node, struct value *const *dy,
                                   struct value **dx) {
  (void)builder;
  (void)node;
  dx[0] = dy[0];
}

static void gradient_of_replicate(struct builder *builder, const struct node *node, struct value *const *dy,
                                  struct value **dx) {
  dx[0] = builder_op(builder, "all_reduce", dy, 1, node->attributes, node->n_attributes);
}

static struct op_exchange exchanged(const struct node *node) {
  return (struct op_exchange){.what = "partial sums",
                              .count = shape_count(node->outputs[0]->shape),
                              .dtype = node->outputs[0]->dtype,
                              .axis = (int)node_int(node, "axis")};
}

static const struct op_kind kind_all_reduce = {
    .name = "all_reduce",
    .class = OP_KERNEL,
    .template_name = "collectives",
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = along,
    .gradient = gradient_of_all_reduce,
    .memory.in_place = {1},
    .cost.flops = op_flops_none,
    .evaluation.mean = op_mean_preserved,
    .ranks.exchanged = exchanged,
    .reference.evaluate = reference,
};

static bool view(const struct node *node, const int64_t *in_strides, int64_t *offset, int64_t *out_strides) {
  *offset = 0;
  memcpy(out_strides, in_strides, (size_t)node->inputs[0]->shape.rank * sizeof *out_strides);
  return true;
}

static bool unview(const struct node *node, const int64_t *out_strides, int64_t *in_strides) {
  int64_t offset;
  return view(node, out_strides, &offset, in_strides);
}

static const struct op_kind kind_replicate = {
    .name = "replicate",
    .class = OP_VIEW,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = infer,
    .sequence.along = along,
    .gradient = gradient_of_replicate,
    .layout.view = view,
    .layout.unview = unview,
    .cost.flops = op_flops_none,
    .reference.evaluate = reference,
};

const struct op_file op_file_all_reduce = {
    .name = "all_reduce",
    .kinds = (const struct op_kind *const[]){&kind_all_reduce, &kind_replicate, NULL},
};
