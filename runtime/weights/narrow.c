#include "runtime/weights/narrow.h"

#include "runtime/base/dtype.h"
#include "runtime/base/half.h"
#include "runtime/weights/quantize.h"

#include <stdlib.h>
#include <string.h>

/* A narrowed tensor's source is a view of its float32 values. */
static void release(void *source) {
  struct tensor_view *wide = source;
  if (wide->release != NULL)
    wide->release(wide->source);
  else
    free(wide->source);
  free(wide);
}

static void narrow(const float *from, size_t count, enum accel_dtype dtype, uint16_t *to) {
  if (dtype == ACCEL_BFLOAT16)
    for (size_t i = 0; i < count; i++) to[i] = rt_narrow_bfloat16(from[i]);
  else
    for (size_t i = 0; i < count; i++) to[i] = rt_narrow_float16(from[i]);
}

static bool make_narrow(const struct tensor_view *tensor, void *out) {
  const struct tensor_view *wide = tensor->source;
  const bool is_made = wide->make != NULL || wide->scratch != NULL;
  float *made = is_made ? malloc(wide->size) : NULL;
  bool good = !is_made || made != NULL;
  if (good && wide->scratch != NULL) good = rt_scratch_read(wide->scratch, wide->bytes, made, wide->size);
  if (good && wide->make != NULL) good = wide->make(wide, made);
  if (good) narrow(made != NULL ? made : (const float *)wide->bytes, wide->size / sizeof(float), tensor->dtype, out);
  free(made);
  return good;
}

static bool narrow_tensor(struct tensor_view *tensor, enum accel_dtype dtype) {
  struct tensor_view *wide = malloc(sizeof *wide);
  if (wide == NULL) return false;
  *wide = *tensor;
  *tensor = (struct tensor_view){.name = tensor->name,
                                 .dtype = dtype,
                                 .rank = tensor->rank,
                                 .size = tensor->size / sizeof(float) * rt_dtype_size(dtype),
                                 .make = make_narrow,
                                 .source = wide,
                                 .release = release};
  memcpy(tensor->shape, wide->shape, sizeof tensor->shape);
  return true;
}

bool rt_tensors_narrow(const struct accel_program *program, struct tensor_list *list, enum accel_dtype dtype,
                       struct problem *problem) {
  for (int i = 0; i < list->count && dtype != ACCEL_FLOAT32; i++)
    if (list->items[i].dtype == ACCEL_FLOAT32 && !rt_is_scale(program, list->items[i].name) &&
        !narrow_tensor(&list->items[i], dtype))
      return rt_problem(problem, "no memory for the list of tensors");
  return true;
}
