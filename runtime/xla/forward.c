/* A program that runs a model forward alone: its modules, and the tensors on the device, which they share. */
#include "runtime/process/fail.h"
#include "runtime/weights/layers.h"
#include "runtime/xla/module.h"

#include <stdlib.h>
#include <string.h>

static struct forward {
  struct xla_module module, second;
  struct xla_buffer **tensors;
  int n_tensors;
  char *arena;
} forward;

static struct xla_module compile(struct xla *xla, const struct accel_xla_module *module) {
  return rt_xla_module(xla, module, forward.n_tensors, module->n_outputs + module->n_kept);
}

void accel_xla_open_forward(const struct accel_program *program, void *arena, const void *weights,
                            const struct accel_xla_module *module) {
  struct problem problem;
  const struct accel_program *all = rt_layers_expand(program, &problem);
  rt_xla_require(all != NULL, &problem);
  forward.arena = arena;
  forward.n_tensors = all->n_tensors;
  forward.tensors = calloc((size_t)all->n_tensors + 1, sizeof *forward.tensors);
  rt_xla_require(forward.tensors != NULL || rt_problem(&problem, "out of memory"), &problem);
  forward.module = compile(rt_xla_start(module), module);
  for (int i = 0; i < all->n_tensors; i++)
    forward.tensors[i] =
        rt_xla_send_tensor(forward.module.xla, 0, &all->tensors[i], (const char *)weights + all->tensors[i].offset);
}

void accel_xla_open_second(const struct accel_xla_module *module) {
  forward.second = compile(forward.module.xla, module);
}

/* What the module donates is gone, and its new value is in its place. */
static void run(struct xla_module *module) {
  const struct accel_xla_module *of = module->of;
  memcpy(module->arguments, forward.tensors, (size_t)forward.n_tensors * sizeof *forward.tensors);
  rt_xla_module_run(module, forward.arena);
  for (int i = 0; i < of->n_kept; i++) {
    rt_xla_drop(module->xla, forward.tensors[of->kept[i]]);
    forward.tensors[of->kept[i]] = module->results[of->n_outputs + i];
  }
  rt_xla_module_take(module, forward.arena);
}

void accel_xla_forward(void) {
  run(&forward.module);
}

void accel_xla_forward_second(void) {
  run(&forward.second);
}

void accel_xla_close_forward(void) {
  for (int i = 0; i < forward.n_tensors; i++) rt_xla_drop(forward.module.xla, forward.tensors[i]);
  rt_xla_module_close(&forward.second);
  rt_xla_module_close(&forward.module);
  rt_xla_close(forward.module.xla);
  free(forward.tensors);
}
