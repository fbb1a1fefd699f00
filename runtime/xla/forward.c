/* A program that runs a model forward alone: its module, and the weights on the device. */
#include "runtime/process/fail.h"
#include "runtime/weights/layers.h"
#include "runtime/xla/module.h"

static struct forward {
  struct xla_module module;
  char *arena;
} forward;

void accel_xla_open_forward(const struct accel_program *program, void *arena, const void *weights,
                            const struct accel_xla_module *module) {
  struct problem problem;
  const struct accel_program *all = rt_layers_expand(program, &problem);
  rt_xla_require(all != NULL, &problem);
  forward.arena = arena;
  forward.module = rt_xla_module(rt_xla_start(module), module, all->n_tensors, module->n_outputs);
  for (int i = 0; i < all->n_tensors; i++)
    forward.module.arguments[i] =
        rt_xla_send_tensor(forward.module.xla, 0, &all->tensors[i], (const char *)weights + all->tensors[i].offset);
}

void accel_xla_forward(void) {
  rt_xla_module_run(&forward.module, forward.arena);
  rt_xla_module_take(&forward.module, forward.arena);
}

void accel_xla_close_forward(void) {
  for (int i = 0; i < forward.module.n_kept; i++) rt_xla_drop(forward.module.xla, forward.module.arguments[i]);
  rt_xla_module_close(&forward.module);
  rt_xla_close(forward.module.xla);
}
