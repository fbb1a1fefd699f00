#include "gen/ops/support/support.h"

double op_flops_none(const struct node *node) {
  (void)node;
  return 0;
}

double op_flops_each(const struct node *node, int index, double each) {
  return each * (double)shape_count(node->inputs[index]->shape);
}

struct mean op_mean_preserved(const struct node *node, const struct mean *inputs) {
  (void)node;
  return inputs[0];
}

struct mean op_mean_added(const struct node *node, const struct mean *inputs) {
  struct mean a = inputs[0], b = inputs[1];
  if (a.form == MEAN_SAME && b.form != MEAN_SUM) return b;
  if (b.form == MEAN_SAME && a.form != MEAN_SUM) return a;
  bool fixed = a.form == MEAN_FIXED, same = a.most == b.most && a.of == b.of && a.without == b.without;
  if (a.form != b.form || (!fixed && !same)) return (struct mean){.form = MEAN_NONE};
  if (a.form != MEAN_COUNTED) a.count = node->outputs[0];
  return a;
}

struct mean op_mean_over_targets(const struct node *node, const struct mean *inputs) {
  (void)inputs;
  return (struct mean){.form = MEAN_COUNTED,
                       .most = (double)shape_count(node->inputs[node->n_inputs - 1]->shape),
                       .count = node->outputs[2],
                       .inverse = true,
                       .of = node->inputs[node->n_inputs - 1],
                       .without = node_int(node, "ignore")};
}
