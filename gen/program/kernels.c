#include "gen/program/kernels.h"

#include "gen/ir/op.h"

int kernel_index(const struct program *program, const struct kernel *kernel) {
  for (int i = 0; i < program->kernels.count; i++)
    if (program->kernels.items[i] == kernel) return i;
  return -1;
}

double kernel_bytes(const struct kernel *kernel) {
  const struct node *node = kernel->node;
  int64_t bytes = 0;
  for (int i = 0; i < node->n_inputs; i++)
    bytes += shape_count(kernel->inputs[i].shape) * dtype_size(kernel->inputs[i].dtype);
  for (int i = 0; i < node->n_outputs; i++) {
    bool workspace = node->kind->memory.workspace >> op_described(node->kind, i) & 1;
    int64_t times = workspace ? 0 : kernel->outputs[i].accumulate ? 2 : 1;
    bytes += times * shape_count(kernel->outputs[i].shape) * dtype_size(kernel->outputs[i].dtype);
  }
  return (double)bytes;
}
