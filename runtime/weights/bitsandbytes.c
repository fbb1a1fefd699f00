#include "runtime/weights/bitsandbytes.h"

#include "include/accel/quantized_gemm.h"
#include "runtime/base/levels.h"
#include "runtime/weights/quantize.h"
#include "runtime/weights/streamed.h"
#include "runtime/weights/window.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names ---- */

static const char state_name[] = ".quant_state.bitsandbytes__";

static const char *written(char *name, size_t size, const char *weight, const char *rest) {
  const int length = snprintf(name, size, "%s%s", weight, rest);
  return length > 0 && (size_t)length < size ? name : NULL;
}

const char *rt_layout_state(const struct accel_program *program, const struct accel_quantized *quantized, char *name,
                            size_t size) {
  char rest[64];
  snprintf(rest, sizeof rest, "%s%s", state_name, quantized->as == ACCEL_CODES_FP4 ? "fp4" : "nf4");
  return written(name, size, program->tensors[quantized->codes].name, rest);
}

const char *rt_layout_name(const struct accel_program *program, int tensor, char *name, size_t size) {
  const struct accel_quantized *quantized = rt_quantized_of(program, tensor);
  if (quantized == NULL || rt_levels_4(quantized->as) == NULL || tensor == quantized->codes) return NULL;
  const char *weight = program->tensors[quantized->codes].name;
  if (tensor == quantized->absmax) return written(name, size, weight, ".absmax");
  if (tensor == quantized->nested_absmax) return written(name, size, weight, ".nested_absmax");
  return rt_layout_state(program, quantized, name, size);
}

bool rt_is_layout_state(const char *tensor) {
  return strstr(tensor, state_name) != NULL;
}

bool rt_layout_has(const char *tensor, const char *weight) {
  static const char *const rests[] = {".quant_map", ".nested_quant_map", "_format"};
  const size_t length = strlen(weight);
  if (strncmp(tensor, weight, length) != 0) return false;
  for (size_t i = 0; i < sizeof rests / sizeof *rests; i++)
    if (strcmp(tensor + length, rests[i]) == 0) return true;
  return strncmp(tensor + length, state_name, sizeof state_name - 1) == 0;
}

/* ---- Reading ---- */

static bool is_number(const json_t *state, const char *key, int64_t value) {
  return json_integer_value(json_object_get(state, key)) == value;
}

static bool agrees(const struct accel_quantized *quantized, const json_t *state, const char *path, const char *name,
                   struct problem *problem) {
  const json_t *shape = json_object_get(state, "shape");
  const bool nested = json_object_get(state, "nested_offset") != NULL, wants = quantized->nested_absmax >= 0;
  if (nested != wants) {
    rt_problem(problem, "%s: '%s' is of codes %s double quantization", path, name, nested ? "with" : "without");
    return rt_help(problem, "set model.quantize.bnb_4bit_use_double_quant: %s", nested ? "true" : "false");
  }
  if (!is_number(state, "blocksize", ACCEL_QUANTIZED_BLOCK) ||
      (nested && !is_number(state, "nested_blocksize", ACCEL_QUANTIZED_NESTED))) {
    rt_problem(problem, "%s: '%s' is of codes in blocks of another size than %d, and %d of scales", path, name,
               ACCEL_QUANTIZED_BLOCK, ACCEL_QUANTIZED_NESTED);
    return rt_help(problem, "quantize the weights with bitsandbytes' own sizes of blocks");
  }
  if (json_array_size(shape) == 2 && json_integer_value(json_array_get(shape, 0)) == quantized->out &&
      json_integer_value(json_array_get(shape, 1)) == quantized->in)
    return true;
  rt_problem(problem, "%s: '%s' is of another shape than the model's, [%lld][%lld]", path, name,
             (long long)quantized->out, (long long)quantized->in);
  return rt_help(problem, "give the weights of this model, or set model.config to that of the weights");
}

bool rt_layout_read(const struct accel_quantized *quantized, const struct stored_tensor *tensor, const char *path,
                    float *offset, struct problem *problem) {
  struct window window = rt_window_open(tensor, 0, tensor->size);
  json_t *state = json_loadb((const char *)window.bytes, tensor->size, 0, NULL);
  rt_window_close(&window);
  if (state == NULL) {
    rt_problem(problem, "%s: '%s' is no JSON", path, tensor->name);
    return rt_help(problem, "save the quantized weights again");
  }
  const bool good = agrees(quantized, state, path, tensor->name, problem);
  *offset = (float)json_number_value(json_object_get(state, "nested_offset"));
  json_decref(state);
  return good;
}

/* ---- Writing ---- */

static bool add(struct tensor_list *tensors, const char *weight, const char *rest, enum accel_dtype dtype,
                int64_t count, const void *bytes, size_t size) {
  char name[1024];
  struct tensor_view *items = realloc(tensors->items, ((size_t)tensors->count + 1) * sizeof *items);
  if (items == NULL) return false;
  tensors->items = items;
  struct tensor_view *tensor = &items[tensors->count];
  *tensor = (struct tensor_view){.dtype = dtype, .rank = 1, .shape = {count}, .size = size};
  if (written(name, sizeof name, weight, rest) == NULL) return false;
  tensor->name = strdup(name);
  tensor->source = malloc(size); /* the list frees it */
  if (tensor->name == NULL || tensor->source == NULL) {
    free(tensor->name);
    free(tensor->source);
    return false;
  }
  tensor->bytes = memcpy(tensor->source, bytes, size);
  tensors->count++;
  return true;
}

/* The JSON of a weight, in text[]. */
static int make_state(const struct accel_program *program, const struct accel_quantized *quantized, const void *weights,
                      char *text, size_t size) {
  char nested[160] = "";
  if (quantized->nested_offset >= 0) {
    const float *offset = rt_parameter_at(program, weights, quantized->nested_offset);
    snprintf(nested, sizeof nested,
             ", \"nested_blocksize\": %d, \"nested_dtype\": \"float32\", \"nested_offset\": %.9g",
             ACCEL_QUANTIZED_NESTED, (double)*offset);
  }
  return snprintf(text, size,
                  "{\"quant_type\": \"%s\", \"blocksize\": %d, \"dtype\": \"float32\", \"shape\": [%lld, %lld]%s}",
                  quantized->as == ACCEL_CODES_FP4 ? "fp4" : "nf4", ACCEL_QUANTIZED_BLOCK, (long long)quantized->out,
                  (long long)quantized->in, nested);
}

static bool add_all(const struct accel_program *program, const struct accel_quantized *quantized, const void *weights,
                    struct tensor_list *tensors) {
  const char *weight = program->tensors[quantized->codes].name;
  char text[512], name[1024];
  float levels[LEVELS_8];
  const int length = make_state(program, quantized, weights, text, sizeof text);
  if (rt_layout_state(program, quantized, name, sizeof name) == NULL ||
      !add(tensors, name, "", ACCEL_UINT8, length, text, (size_t)length) ||
      !add(tensors, weight, ".quant_map", ACCEL_FLOAT32, LEVELS_4, rt_levels_4(quantized->as),
           LEVELS_4 * sizeof *levels))
    return false;
  rt_levels_8(levels);
  return quantized->nested_absmax < 0 ||
         add(tensors, weight, ".nested_quant_map", ACCEL_FLOAT32, LEVELS_8, levels, sizeof levels);
}

static int named(const struct accel_program *program, const char *name) {
  int i = program->n_tensors - 1;
  while (i >= 0 && strcmp(program->tensors[i].name, name) != 0) i--;
  return i;
}

static bool has(const struct tensor_list *tensors, const char *name) {
  int i = tensors->count - 1;
  while (i >= 0 && strcmp(tensors->items[i].name, name) != 0) i--;
  return i >= 0;
}

/* Scales get their other names; an offset is in the JSON. */
static bool rename_scales(const struct accel_program *program, struct tensor_list *tensors) {
  int count = 0;
  bool good = true;
  for (int i = 0; i < tensors->count; i++) {
    struct tensor_view tensor = tensors->items[i];
    char name[1024];
    const int which = named(program, tensor.name);
    const char *other = which >= 0 ? rt_layout_name(program, which, name, sizeof name) : NULL;
    if (other != NULL) {
      free(tensor.name);
      if (rt_is_layout_state(other)) continue;
      tensor.name = strdup(other);
      good &= tensor.name != NULL;
    }
    tensors->items[count++] = tensor;
  }
  tensors->count = count;
  return good;
}

bool rt_tensors_lay_out(const struct accel_program *program, const void *weights, struct tensor_list *tensors,
                        struct problem *problem) {
  bool good = rename_scales(program, tensors);
  for (int i = 0; good && i < program->n_quantized; i++)
    if (rt_levels_4(program->quantized[i].as) != NULL &&
        has(tensors, program->tensors[program->quantized[i].codes].name))
      good = add_all(program, &program->quantized[i], weights, tensors);
  return good || rt_problem(problem, "no memory for the list of weights");
}
