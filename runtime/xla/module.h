/* The modules of a program, compiled, and the arrays that they take and give. Errors end the process. */
#ifndef RUNTIME_XLA_MODULE_H
#define RUNTIME_XLA_MODULE_H

#include "include/accel/xla.h"
#include "runtime/xla/xla.h"

/* A module of the program: its arguments are arrays that stay on the devices, the first `n_kept` of each, and its
 * inputs, which it takes from the arena each time. arguments[] has n_arguments of each device, results[] n_results. */
struct xla_module {
  const struct accel_xla_module *of;
  struct xla *xla;
  struct xla_program *compiled;
  struct xla_buffer **arguments, **results;
  int n_kept, n_arguments, n_results;
};

/* Ends the process with the problem unless all is good. */
void rt_xla_require(bool good, const struct problem *problem);

/* Loads the plugin that rt_xla_find finds for the module's kind of device, with as many devices as it runs on. */
struct xla *rt_xla_start(const struct accel_xla_module *module);

/* Compiles it, or reads it as it was compiled before; it must give `n_results` arrays on each device. */
struct xla_module rt_xla_module(struct xla *xla, const struct accel_xla_module *of, int n_kept, int n_results);

/* A line of the memory that it takes. */
void rt_xla_say_memory(const struct xla_module *module);

/* Runs it over its inputs in the arena, which are copied: they may change at once. Then `results` are arrays of which
 * the caller must let go, and arguments that the module donates are gone. */
void rt_xla_module_run(const struct xla_module *module, const void *arena);

/* Waits for the first results, which are outputs, copies those of all devices into the arena and lets go of them. */
void rt_xla_module_take(const struct xla_module *module, void *arena);

void rt_xla_module_close(struct xla_module *module);

/* Copies of a tensor on a device and on the host. */
struct xla_buffer *rt_xla_send_tensor(struct xla *xla, int device, const struct accel_tensor *tensor,
                                      const void *values);
void rt_xla_fetch_tensor(struct xla *xla, const struct accel_tensor *tensor, struct xla_buffer *buffer, void *values);

/* The same of a device's part of a tensor among `devices` of them (accel_xla_open); `values` are those of all. */
struct xla_buffer *rt_xla_send_part(struct xla *xla, int device, int devices, const struct accel_tensor *tensor,
                                    const void *values);
void rt_xla_fetch_part(struct xla *xla, int device, int devices, const struct accel_tensor *tensor,
                       struct xla_buffer *buffer, void *values);

#endif
