/* y = x / (1 - p) where a random number is at least p, else 0 (Srivastava et al., JMLR 15, 2014; scaled in training as
 * PyTorch does). dx is the same of dy with the same numbers: `site` says which ones. */
#include <math.h>

#include "gen/ops/support/support.h"

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  double p = node_real(node, "p"), threshold = round(p * 4294967296.0);
  uint32_t site = (uint32_t)node_int(node, "site");
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++)
    outputs[0][i] = op_random_word((uint64_t)i, site) < threshold ? 0 : inputs[0][i] / (1 - p);
}

struct value *op_dropout(struct builder *builder, struct value *x, double p, int64_t site) {
  struct attribute attributes[] = {attribute_real("p", p), attribute_int("site", site)};
  return builder_op(builder, "dropout", &x, 1, attributes, 2);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_dropout(builder, dy[0], node_real(node, "p"), node_int(node, "site"));
}

static struct value *evaluated(struct builder *builder, const struct node *node) {
  (void)builder;
  return node->inputs[0];
}

static const struct op_kind kind = {
    .name = "dropout",
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_like,
    .gradient = gradient,
    .memory.in_place = {1},
    .truth.reference = reference,
    .kernel.random = true,
    .evaluation.substitute = evaluated,
};

/* dropout(x, p): x itself when p is 0. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  double p = arguments[1].real;
  if (x == NULL) return NULL;
  if (!(p >= 0 && p < 1)) {
    builder_error(builder, "dropout: the probability must be at least 0 and below 1, not %g", p);
    return NULL;
  }
  return p == 0 ? x : op_dropout(builder, x, p, builder_random_count(builder));
}

const struct op_file op_file_dropout = {
    .name = "dropout",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"dropout", .build = build}, {0}},
};
