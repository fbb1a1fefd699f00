/* Programs in StableHLO, compiled and run by XLA through a plugin of PJRT's C API (github.com/openxla/xla,
 * xla/pjrt/c/pjrt_c_api.h): one process, with one or several devices. All functions that can fail return false and set
 * the problem. */
#ifndef RUNTIME_XLA_XLA_H
#define RUNTIME_XLA_XLA_H

#include "include/accel/dtype.h"
#include "runtime/base/problem.h"

#include <stddef.h>
#include <stdint.h>

/* A loaded plugin and its devices, which are numbered from 0; a compiled program; an array in a device's memory. */
struct xla;
struct xla_program;
struct xla_buffer;

/* ---- The plugin ---- */

/* Where the plugin for a kind of device is ("tpu"; NULL or "xla": any, or that for processors):
 * $PJRT_PLUGIN_LIBRARY_PATH, or that of the kind's package in the site-packages of $VIRTUAL_ENV, of $PYTHON, of the
 * user and of the system. The path is put into path[size]. */
bool rt_xla_find(const char *kind, char *path, size_t size, struct problem *problem);

/* Loads the plugin at `path` and opens its devices, of which there must be `devices` at least: the plugin for
 * processors makes as many. What it logs meanwhile is dropped: what goes wrong is the problem. A plugin stays loaded
 * until the process ends; rt_xla_close closes its devices. */
bool rt_xla_open(const char *path, int devices, struct xla **opened, struct problem *problem);
void rt_xla_close(struct xla *xla);

/* What the plugin says of itself: the platform ("cpu"), the version of its libraries, and that of the API. The texts
 * are of `xla`. */
struct xla_facts {
  const char *platform, *version;
  int major, minor, devices;
};
struct xla_facts rt_xla_facts(const struct xla *xla);

/* ---- Programs ---- */

/* Compiles a module of StableHLO, in MLIR's text, whose function `main` is the program, for `replicas` devices that run
 * it together: the first ones. `folder`: where compiled programs are kept, by module, plugin and replicas, so that the
 * next compilation is reading a file; NULL: nowhere. A file there that is damaged, or that cannot be written, costs the
 * compilation and is no error. rt_xla_discard frees it. */
bool rt_xla_compile(struct xla *xla, const char *module, int replicas, const char *folder,
                    struct xla_program **compiled, struct problem *problem);
void rt_xla_discard(struct xla_program *program);

/* Whether it was read from the folder. */
bool rt_xla_was_kept(const struct xla_program *program);

/* How many results it has on each device, and on how many devices it runs. */
int rt_xla_results(const struct xla_program *program);
int rt_xla_replicas(const struct xla_program *program);

/* Bytes on each device, as XLA says: `reused` of the arguments are donated to results. */
struct xla_memory {
  int64_t arguments, results, reused, temporary, code;
};
bool rt_xla_memory(const struct xla_program *program, struct xla_memory *memory, struct problem *problem);

/* Runs it over its arguments: those of the first device, n_arguments of them, then those of the second. results[] gets
 * rt_xla_results buffers of each device in the same order, which are filled when the device has come that far; the call
 * does not wait. Arguments that the module donates (tf.aliasing_output) are gone after it, but for rt_xla_drop. */
bool rt_xla_run(struct xla_program *program, struct xla_buffer *const *arguments, int n_arguments,
                struct xla_buffer **results, struct problem *problem);

/* ---- Arrays ---- */

/* Copies dense row-major values to a device. */
bool rt_xla_put(struct xla *xla, int device, enum accel_dtype dtype, const int64_t *dims, int rank, const void *values,
                struct xla_buffer **put, struct problem *problem);

/* Waits for an array and copies it to values[], which has room for `size` bytes, row-major. */
bool rt_xla_get(struct xla *xla, struct xla_buffer *buffer, void *values, size_t size, struct problem *problem);

/* Lets go of an array; NULL is none. */
void rt_xla_drop(struct xla *xla, struct xla_buffer *buffer);

#endif
