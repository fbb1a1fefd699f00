#include "runtime/weights/tensor_parts.h"

#include "runtime/base/dtype.h"
#include "runtime/process/world.h"
#include "runtime/weights/safetensors.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64 }; /* tensors start at lines of memory */

static struct tensor_part *parts; /* by tensor */

static size_t elements_of(const struct accel_tensor *tensor) {
  size_t bytes = (size_t)rt_shape_count(tensor->rank, tensor->shape) * rt_dtype_size(tensor->dtype);
  return (bytes + sizeof(float) - 1) / sizeof(float);
}

static int64_t product(const int64_t *shape, int first, int end) {
  int64_t count = 1;
  for (int i = first; i < end; i++) count *= shape[i];
  return count;
}

/* Makes a tensor whole, and notes what of it a rank has. */
static void join(const struct accel_program *program, const struct accel_tensor_part *as, struct accel_tensor *tensor,
                 struct tensor_part *part) {
  int64_t outer = product(tensor->shape, 0, as->dim), inner = product(tensor->shape, as->dim + 1, tensor->rank);
  part->axis = as->axis;
  part->ranks = (size_t)program->mesh[as->axis];
  part->pieces = (size_t)(outer * as->blocks);
  part->length = (size_t)(tensor->shape[as->dim] / as->blocks * inner);
  tensor->shape[as->dim] *= program->mesh[as->axis];
}

const struct accel_program *rt_tensor_parts_join(const struct accel_program *program, struct problem *problem) {
  static struct accel_program joined;
  size_t count = (size_t)program->n_tensors + 1, end = 0;
  if (program->n_tensor_parts == 0) return program;
  struct accel_tensor *tensors = calloc(count, sizeof *tensors);
  parts = calloc(count, sizeof *parts);
  if (tensors == NULL || parts == NULL) {
    rt_problem(problem, "no memory for the list of tensors");
    return NULL;
  }
  for (int i = 0; i < program->n_tensors; i++) {
    tensors[i] = program->tensors[i];
    parts[i] = (struct tensor_part){.ranks = 1, .pieces = 1, .length = elements_of(&tensors[i])};
  }
  for (int i = 0; i < program->n_tensor_parts; i++) {
    const struct accel_tensor_part *part = &program->tensor_parts[i];
    join(program, part, &tensors[part->tensor], &parts[part->tensor]);
  }
  for (int i = 0; i < program->n_tensors; i++) {
    parts[i].own = tensors[i].offset / sizeof(float);
    parts[i].whole = end;
    tensors[i].offset = end * sizeof(float);
    end += (elements_of(&tensors[i]) * sizeof(float) + LINE - 1) / LINE * (LINE / sizeof(float));
  }
  joined = *program;
  joined.tensors = tensors;
  joined.sharding = (struct accel_sharding){.whole = (int64_t)end, .n_states = program->n_states};
  return &joined;
}

/* Room for the whole of the largest tensor. */
static char *room(const struct accel_program *program, size_t size) {
  size_t most = 1;
  for (int i = 0; i < program->n_tensors; i++) {
    size_t bytes = parts[i].ranks * parts[i].pieces * parts[i].length * size;
    most = bytes > most ? bytes : most;
  }
  char *all = malloc(most);
  struct problem problem;
  rt_problem(&problem, "no memory for %zu bytes of a tensor that ranks divide", most);
  rt_world_require(all != NULL, &problem, 1);
  return all;
}

void rt_tensor_parts_collect(const struct accel_program *program, const char *own, char *whole, size_t size) {
  char *all = room(program, size);
  for (int i = 0; i < program->n_tensors; i++) {
    const struct tensor_part *part = &parts[i];
    size_t length = part->length * size, bytes = part->pieces * length;
    const char *from = own + part->own * size;
    if (part->ranks > 1) rt_world_collect(part->axis, from, all, bytes, bytes);
    if (whole == NULL) continue;
    for (size_t p = 0; p < part->pieces; p++)
      for (size_t r = 0; r < part->ranks; r++)
        memcpy(whole + part->whole * size + (p * part->ranks + r) * length,
               (part->ranks > 1 ? all + r * bytes : from) + p * length, length);
  }
  free(all);
}

void rt_tensor_parts_deal(const struct accel_program *program, char *own, const char *whole, size_t size) {
  char *all = room(program, size);
  for (int i = 0; i < program->n_tensors; i++) {
    const struct tensor_part *part = &parts[i];
    size_t length = part->length * size, bytes = part->ranks * part->pieces * length;
    size_t rank = part->ranks > 1 ? (size_t)rt_rank_along(program, part->axis) : 0;
    if (whole != NULL) memcpy(all, whole + part->whole * size, bytes);
    rt_world_share(all, bytes);
    for (size_t p = 0; p < part->pieces; p++)
      memcpy(own + part->own * size + p * length, all + (p * part->ranks + rank) * length, length);
  }
  free(all);
}
