#include "gen/ir/op.h"

#include <string.h>

const struct op_kind *op_kind_find(const char *name) {
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->kinds != NULL && op_files[i]->kinds[k] != NULL; k++)
      if (strcmp(op_files[i]->kinds[k]->name, name) == 0) return op_files[i]->kinds[k];
  return NULL;
}

const struct op_function *op_function_find(const char *name) {
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->functions != NULL && op_files[i]->functions[k].name != NULL; k++)
      if (strcmp(op_files[i]->functions[k].name, name) == 0) return &op_files[i]->functions[k];
  return NULL;
}

double op_flops(const struct node *node) {
  if (node->kind->flops != NULL) return node->kind->flops(node);
  if (node->kind->flops_each > 0) return node->kind->flops_each * (double)shape_count(node->inputs[0]->shape);
  return node->n_outputs > 0 ? (double)shape_count(node->outputs[0]->shape) : 0;
}

bool op_assigns(const struct op_kind *kind) {
  for (size_t i = 0; i < sizeof kind->assigns / sizeof kind->assigns[0]; i++)
    if (kind->assigns[i] > 0) return true;
  return false;
}

const struct op_kind *op_cast_kind(enum dtype dtype) {
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->kinds != NULL && op_files[i]->kinds[k] != NULL; k++)
      if (op_files[i]->kinds[k]->converts && op_files[i]->kinds[k]->to == dtype) return op_files[i]->kinds[k];
  return NULL;
}

bool value_is_view(const struct value *value) {
  return value->producer != NULL && value->producer->kind->class == OP_VIEW;
}

const struct value *viewed_value(const struct value *value) {
  while (value_is_view(value)) value = value->producer->inputs[0];
  return value;
}
