#include "runtime/weights/adapters.h"

#include "runtime/files/files.h"
#include "runtime/files/folders.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/shards.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What PeftModel puts before the names of the model that it holds. */
static const char outer[] = "base_model.model.";

static float *values_of(const struct accel_program *program, const void *weights, int tensor) {
  return (float *)((const char *)weights + program->tensors[tensor].offset);
}

static const char *name_of(const struct accel_program *program, const struct adapter_base *base, int tensor) {
  return base != NULL ? base->names[tensor] : program->tensors[tensor].name;
}

/* ---- Saving ---- */

static bool add(struct tensor_list *list, const struct accel_program *program, const void *weights,
                const struct adapter_base *base, int index) {
  const struct accel_tensor *tensor = &program->tensors[index];
  struct tensor_view view = {.dtype = ACCEL_FLOAT32, .rank = tensor->rank};
  const char *own = program->start.prefix != NULL ? program->start.prefix : "";
  const char *prefix = base != NULL ? base->prefix : own, *name = name_of(program, base, index);
  size_t size = sizeof outer + strlen(prefix) + strlen(name);
  memcpy(view.shape, tensor->shape, sizeof view.shape);
  view.size = (size_t)rt_shape_count(tensor->rank, tensor->shape) * sizeof(float);
  view.bytes = (char *)values_of(program, weights, index);
  view.name = malloc(size);
  if (view.name == NULL) return false;
  snprintf(view.name, size, "%s%s%s", outer, prefix, name);
  list->items[list->count++] = view;
  return true;
}

static bool list_all(struct tensor_list *list, const struct accel_program *program, const void *weights,
                     const struct adapter_base *base) {
  const struct accel_adapters *adapters = &program->adapters;
  list->items = calloc((size_t)(2 * adapters->count + adapters->n_whole) + 1, sizeof *list->items);
  if (list->items == NULL) return false;
  for (int i = 0; i < adapters->count; i++)
    if (!add(list, program, weights, base, adapters->items[i].a) ||
        !add(list, program, weights, base, adapters->items[i].b))
      return false;
  for (int i = 0; i < adapters->n_whole; i++)
    if (!add(list, program, weights, base, adapters->whole[i])) return false;
  return true;
}

/* The path of a parameter's module, as a JSON string. */
static json_t *module_of(const char *parameter) {
  const char *last = strrchr(parameter, '.');
  return json_stringn(parameter, last != NULL ? (size_t)(last - parameter) : 0);
}

static json_t *whole_modules(const struct accel_program *program, const struct adapter_base *base) {
  const struct accel_adapters *adapters = &program->adapters;
  if (adapters->n_whole == 0) return json_null();
  json_t *list = json_array();
  for (int i = 0; i < adapters->n_whole; i++) {
    json_t *module = module_of(name_of(program, base, adapters->whole[i]));
    bool known = false; /* a module has a weight and a bias */
    for (size_t k = 0; k < json_array_size(list); k++) known |= json_equal(json_array_get(list, k), module) != 0;
    if (known)
      json_decref(module);
    else
      json_array_append_new(list, module);
  }
  return list;
}

static json_t *text_or_null(const char *text) {
  return text != NULL ? json_string(text) : json_null();
}

static char *config_text(const struct accel_program *program, const struct adapter_base *base) {
  const struct accel_adapters *adapters = &program->adapters;
  json_t *targets = json_array();
  for (int i = 0; i < adapters->count; i++)
    json_array_append_new(targets, module_of(name_of(program, base, adapters->items[i].weight)));
  json_t *config =
      json_pack("{s:s, s:o, s:o, s:b, s:I, s:f, s:f, s:b, s:s, s:b, s:o, s:o}", "peft_type", "LORA", "task_type",
                text_or_null(base != NULL ? base->task : NULL), "base_model_name_or_path",
                text_or_null(base != NULL ? base->path : NULL), "inference_mode", 1, "r", (json_int_t)adapters->rank,
                "lora_alpha", adapters->alpha, "lora_dropout", adapters->dropout, "use_rslora", adapters->use_rslora,
                "bias", "none", "fan_in_fan_out", adapters->items[0].in_out, "target_modules", targets,
                "modules_to_save", whole_modules(program, base));
  char *text = config != NULL ? json_dumps(config, JSON_INDENT(2)) : NULL;
  json_decref(config);
  return text;
}

static bool write_config(const struct accel_program *program, const char *folder, const struct adapter_base *base,
                         struct problem *problem) {
  char path[4096];
  if (!rt_join(path, sizeof path, folder, "adapter_config.json", problem)) return false;
  char *text = config_text(program, base);
  bool written = text != NULL ? rt_write_file(path, BY_RENAME, text, strlen(text), NULL, problem)
                              : rt_problem(problem, "%s: no memory to write it", path);
  free(text);
  return written;
}

bool rt_adapters_save(const struct accel_program *program, const char *folder, const void *weights,
                      const struct adapter_base *base, struct problem *problem) {
  struct tensor_list list = {0};
  bool saved = rt_folder_make_own(folder, problem);
  if (saved && !list_all(&list, program, weights, base))
    saved = rt_problem(problem, "%s: no memory for the adapters", folder);
  saved = saved && rt_shards_write(folder, "adapter_model", &list, 0, NULL, problem) &&
          write_config(program, folder, base, problem);
  rt_tensors_free(&list);
  return saved;
}

/* ---- Merging ---- */

/* What a merged weight is made of. */
struct merge {
  struct tensor_view base;
  const float *a, *b;
  int64_t out, in, rank;
  double scale;
  bool in_out;
};

static bool merge(const struct tensor_view *tensor, void *made) {
  const struct merge *of = tensor->source;
  const float *w = of->base.make != NULL ? made : (const float *)of->base.bytes;
  float *merged = made;
  if (of->base.make != NULL && !of->base.make(&of->base, made)) return false;
#pragma omp parallel for
  for (int64_t o = 0; o < of->out; o++)
    for (int64_t i = 0; i < of->in; i++) {
      double sum = 0;
      for (int64_t r = 0; r < of->rank; r++) sum += (double)of->b[o * of->rank + r] * of->a[r * of->in + i];
      int64_t at = of->in_out ? i * of->out + o : o * of->in + i;
      merged[at] = w[at] + (float)(of->scale * sum);
    }
  return true;
}

static void release(void *source) {
  struct merge *merge = source;
  free(merge->base.source);
  free(merge);
}

static struct merge *merge_of(const struct accel_program *program, const struct accel_adapter *adapter,
                              const struct tensor_view *base, const void *weights) {
  const struct accel_tensor *left = &program->tensors[adapter->b], *right = &program->tensors[adapter->a];
  struct merge *merge = malloc(sizeof *merge);
  if (merge != NULL)
    *merge = (struct merge){.base = *base,
                            .a = values_of(program, weights, adapter->a),
                            .b = values_of(program, weights, adapter->b),
                            .out = left->shape[0],
                            .in = right->shape[1],
                            .rank = left->shape[1],
                            .scale = program->adapters.scale,
                            .in_out = adapter->in_out};
  return merge;
}

static bool is(const struct accel_program *program, int tensor, const char *name) {
  return strcmp(program->tensors[tensor].name, name) == 0;
}

/* The adapter of this weight, or that this tensor is a part of; NULL: there is none. */
static const struct accel_adapter *adapter_of(const struct accel_program *program, const char *name, bool as_part) {
  for (int i = 0; i < program->adapters.count; i++) {
    const struct accel_adapter *adapter = &program->adapters.items[i];
    if (as_part ? is(program, adapter->a, name) || is(program, adapter->b, name) : is(program, adapter->weight, name))
      return adapter;
  }
  return NULL;
}

static void leave_out_parts(const struct accel_program *program, struct tensor_list *tensors) {
  int count = 0;
  for (int i = 0; i < tensors->count; i++) {
    if (adapter_of(program, tensors->items[i].name, true) != NULL)
      free(tensors->items[i].name);
    else
      tensors->items[count++] = tensors->items[i];
  }
  tensors->count = count;
}

bool rt_adapters_merge(const struct accel_program *program, const void *weights, struct tensor_list *tensors,
                       struct problem *problem) {
  leave_out_parts(program, tensors);
  for (int i = 0; i < tensors->count; i++) {
    struct tensor_view *tensor = &tensors->items[i];
    const struct accel_adapter *adapter = adapter_of(program, tensor->name, false);
    if (adapter == NULL) continue;
    struct merge *made = merge_of(program, adapter, tensor, weights);
    if (made == NULL) return rt_problem(problem, "no memory for the list of adapters");
    tensor->source = made;
    tensor->make = merge;
    tensor->release = release;
  }
  return true;
}
