#include "runtime/xla/module.h"

#include "runtime/base/dtype.h"
#include "runtime/base/terminal.h"
#include "runtime/process/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rt_xla_require(bool good, const struct problem *problem) {
  if (!good) rt_fail(problem, 1);
}

struct xla *rt_xla_start(const struct accel_xla_module *module) {
  char path[4096];
  struct xla *xla = NULL;
  struct problem problem;
  rt_xla_require(rt_xla_find(module->plugin, path, sizeof path, &problem) &&
                     rt_xla_open(path, module->devices, &xla, &problem),
                 &problem);
  return xla;
}

/* ---- Compiling ---- */

static char *join(const struct accel_xla_module *module) {
  size_t size = 1;
  for (size_t i = 0; i < module->n_pieces; i++) size += strlen(module->pieces[i]);
  char *text = malloc(size), *at = text;
  for (size_t i = 0; text != NULL && i < module->n_pieces; i++) {
    const size_t length = strlen(module->pieces[i]);
    memcpy(at, module->pieces[i], length);
    at += length;
  }
  if (text != NULL) *at = '\0';
  return text;
}

/* The folder of compiled modules; NULL: there is none. */
static const char *kept_folder(char *path, size_t size) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int length = -1;
  if (cache != NULL && cache[0] == '/')
    length = snprintf(path, size, "%s/accel-gen/xla", cache);
  else if (home != NULL && home[0] == '/')
    length = snprintf(path, size, "%s/.cache/accel-gen/xla", home);
  return length >= 0 && (size_t)length < size ? path : NULL;
}

static struct xla_program *compile(struct xla *xla, const struct accel_xla_module *module) {
  char folder[4096], *text = join(module);
  struct xla_program *compiled;
  struct problem problem;
  rt_xla_require(text != NULL || rt_problem(&problem, "out of memory"), &problem);
  const bool good = rt_xla_compile(xla, text, module->devices, kept_folder(folder, sizeof folder), &compiled, &problem);
  free(text);
  rt_xla_require(good, &problem);
  return compiled;
}

static void expect_results(const struct xla_program *compiled, int expected) {
  struct problem problem;
  const int results = rt_xla_results(compiled);
  if (results == expected) return;
  rt_problem(&problem, "the module gives %d arrays, and the program has %d", results, expected);
  rt_fail(&problem, 1);
}

static struct xla_buffer **new_buffers(int devices, int count) {
  struct problem problem;
  struct xla_buffer **buffers = calloc((size_t)devices * (size_t)count + 1, sizeof *buffers);
  rt_xla_require(buffers != NULL || rt_problem(&problem, "out of memory"), &problem);
  return buffers;
}

struct xla_module rt_xla_module(struct xla *xla, const struct accel_xla_module *of, int n_kept, int n_results) {
  struct xla_module module = {.of = of, .xla = xla, .compiled = compile(xla, of), .n_kept = n_kept};
  expect_results(module.compiled, n_results);
  module.n_arguments = n_kept + of->n_inputs;
  module.n_results = n_results;
  module.arguments = new_buffers(of->devices, module.n_arguments);
  module.results = new_buffers(of->devices, n_results);
  return module;
}

static double mebibytes(int64_t bytes) {
  return (double)bytes / (1024.0 * 1024.0);
}

void rt_xla_say_memory(const struct xla_module *module) {
  struct xla_memory memory;
  struct problem problem;
  const struct xla_facts facts = rt_xla_facts(module->xla);
  if (!rt_xla_memory(module->compiled, &memory, &problem)) return;
  char each[48] = "";
  if (module->of->devices > 1) snprintf(each, sizeof each, ", on each of %d devices", module->of->devices);
  rt_print(stdout, "XLA       %s, PJRT %d.%d: arguments %.1f MiB, of which %.1f are donated, temporary %.1f%s%s\n",
           facts.platform, facts.major, facts.minor, mebibytes(memory.arguments), mebibytes(memory.reused),
           mebibytes(memory.temporary), each, rt_xla_was_kept(module->compiled) ? "; compiled before" : "");
}

/* ---- Running ---- */

/* Copies the inputs of a device. */
static void put_inputs(const struct xla_module *module, int device, const char *arena) {
  struct xla_buffer **inputs = module->arguments + device * module->n_arguments + module->n_kept;
  struct problem problem;
  for (int i = 0; i < module->of->n_inputs; i++) {
    const struct accel_xla_input *input = &module->of->inputs[i];
    rt_xla_require(rt_xla_put(module->xla, device, input->dtype, input->shape, input->rank,
                              arena + input->offset + (size_t)device * input->stride, &inputs[i], &problem),
                   &problem);
  }
}

static void drop_inputs(const struct xla_module *module, int device) {
  struct xla_buffer **inputs = module->arguments + device * module->n_arguments + module->n_kept;
  for (int i = 0; i < module->of->n_inputs; i++) {
    rt_xla_drop(module->xla, inputs[i]);
    inputs[i] = NULL;
  }
}

void rt_xla_module_run(const struct xla_module *module, const void *arena) {
  struct problem problem;
  for (int device = 0; device < module->of->devices; device++) put_inputs(module, device, arena);
  rt_xla_require(rt_xla_run(module->compiled, module->arguments, module->n_arguments, module->results, &problem),
                 &problem);
  for (int device = 0; device < module->of->devices; device++) drop_inputs(module, device);
}

static void take_from(const struct xla_module *module, int device, char *arena) {
  struct problem problem;
  for (int i = 0; i < module->of->n_outputs; i++) {
    const struct accel_xla_output *output = &module->of->outputs[i];
    struct xla_buffer *result = module->results[device * module->n_results + i];
    char *to = arena + output->offset + (size_t)device * output->stride;
    rt_xla_require(rt_xla_get(module->xla, result, to, output->bytes, &problem), &problem);
    rt_xla_drop(module->xla, result);
  }
}

void rt_xla_module_take(const struct xla_module *module, void *arena) {
  for (int device = 0; device < module->of->devices; device++) take_from(module, device, arena);
}

void rt_xla_module_close(struct xla_module *module) {
  if (module->compiled != NULL) rt_xla_discard(module->compiled);
  free(module->arguments);
  free(module->results);
}

/* ---- Tensors ---- */

struct xla_buffer *rt_xla_send_tensor(struct xla *xla, int device, const struct accel_tensor *tensor,
                                      const void *values) {
  struct xla_buffer *buffer;
  struct problem problem;
  rt_xla_require(rt_xla_put(xla, device, tensor->dtype, tensor->shape, tensor->rank, values, &buffer, &problem),
                 &problem);
  return buffer;
}

void rt_xla_fetch_tensor(struct xla *xla, const struct accel_tensor *tensor, struct xla_buffer *buffer, void *values) {
  size_t bytes = rt_dtype_size(tensor->dtype);
  struct problem problem;
  for (int i = 0; i < tensor->rank; i++) bytes *= (size_t)tensor->shape[i];
  rt_xla_require(rt_xla_get(xla, buffer, values, bytes, &problem), &problem);
}

/* ---- Parts of tensors ---- */

/* A device's part: its elements with those that fill it up, and bytes: where it begins in the tensor, how many of them
 * are the tensor's. */
struct part {
  int64_t count;
  size_t first, bytes, whole;
  char *copy; /* whole bytes of memory */
};

static struct part part_of(int device, int devices, const struct accel_tensor *tensor) {
  const size_t size = rt_dtype_size(tensor->dtype);
  int64_t all = 1;
  for (int i = 0; i < tensor->rank; i++) all *= tensor->shape[i];
  struct part part = {.count = (all + devices - 1) / devices};
  const int64_t first = device * part.count, left = all - first;
  part.whole = (size_t)part.count * size;
  part.first = (size_t)(left > 0 ? first : all) * size;
  part.bytes = left <= 0 ? 0 : left < part.count ? (size_t)left * size : part.whole;
  part.copy = calloc(1, part.whole + 1);
  struct problem problem;
  rt_xla_require(part.copy != NULL || rt_problem(&problem, "out of memory"), &problem);
  return part;
}

struct xla_buffer *rt_xla_send_part(struct xla *xla, int device, int devices, const struct accel_tensor *tensor,
                                    const void *values) {
  const struct part part = part_of(device, devices, tensor);
  struct xla_buffer *buffer;
  struct problem problem;
  memcpy(part.copy, (const char *)values + part.first, part.bytes);
  const bool good = rt_xla_put(xla, device, tensor->dtype, &part.count, 1, part.copy, &buffer, &problem);
  free(part.copy);
  rt_xla_require(good, &problem);
  return buffer;
}

void rt_xla_fetch_part(struct xla *xla, int device, int devices, const struct accel_tensor *tensor,
                       struct xla_buffer *buffer, void *values) {
  const struct part part = part_of(device, devices, tensor);
  struct problem problem;
  rt_xla_require(rt_xla_get(xla, buffer, part.copy, part.whole, &problem), &problem);
  memcpy((char *)values + part.first, part.copy, part.bytes);
  free(part.copy);
}
