#include <string.h>

#include "gen/ops/support/support.h"

enum { MOST_OPERANDS = 8 };

void op_reference_of_sum(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct node over = *node;
  const double *others[MOST_OPERANDS];
  double *sum = outputs[node->n_outputs - 1];
  for (int64_t i = 0; i < shape_count(node->inputs[0]->shape); i++) sum[i] = inputs[0][i] + inputs[1][i];
  over.inputs++;
  over.n_inputs--;
  for (int i = 1; i < over.n_inputs; i++) others[i] = inputs[i + 1];
  others[0] = sum;
  node->kind->fusion.plain->reference.evaluate(&over, others, outputs);
}

static void add_last(const struct node *node, const double *const *inputs, double *dx) {
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++) dx[i] += inputs[node->n_inputs - 1][i];
}

void op_reference_plus(const struct node *node, const double *const *inputs, double *const *outputs) {
  node->kind->fusion.plain->reference.evaluate(node, inputs, outputs);
  add_last(node, inputs, outputs[0]);
}

void op_reference_with_bits16(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct node wide = *node;
  double *own[MOST_OPERANDS] = {outputs[0]};
  wide.n_outputs--;
  for (int i = 1; i < wide.n_outputs; i++) own[i] = outputs[i + 1];
  node->kind->fusion.plain->reference.evaluate(&wide, inputs, own);
  add_last(node, inputs, outputs[0]);
  memcpy(outputs[1], outputs[0], (size_t)shape_count(node->outputs[0]->shape) * sizeof *outputs[1]);
}
