#include "gen/program/library.h"

#include "gen/ir/op.h"
#include "gen/program/target.h"

const char library_variant[] = "heuristic";

static bool leaves(const struct job *job, enum library_part part) {
  const enum device_kernels kernels[] = {[LIBRARY_NONE] = KERNELS_OWN,
                                         [LIBRARY_ATTENTION] = job->devices.attention,
                                         [LIBRARY_CONVOLUTION] = job->devices.convolution};
  return kernels[part] == KERNELS_LIBRARY;
}

static bool has_part(const struct program *program, const struct node *node) {
  return program->target->library.parts >> node->kind->library.part & 1;
}

bool library_has(const struct program *program, const struct node *node) {
  return has_part(program, node) && leaves(program->job, node->kind->library.part) && node->kind->library.offers(node);
}

bool library_computes(const struct program *program, const struct kernel *kernel) {
  const struct node *node = kernel->node;
  for (int i = 0; i < node->n_outputs; i++)
    if (kernel->outputs[i].accumulate && !node->kind->library.accumulates) return false;
  return library_has(program, node);
}
