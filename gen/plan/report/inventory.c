#include "gen/plan/report/inventory.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/plan/report/figures.h"

/* Samples, or tokens, of the batch that the forward runs over. */
static double units(const struct program *program) {
  const struct job *job = program->job;
  return (double)job->data.batch_size * (job_has_rows(job) ? 1 : job->data.sequence_length);
}

static const char *unit(const struct program *program) {
  return job_has_rows(program->job) ? "sample" : "token";
}

/* How often one run of `from` runs `function`. */
static int64_t runs_in(const struct function *from, const struct function *function) {
  int64_t runs = from == function;
  for (int i = 0; i < from->n_steps; i++)
    if (from->steps[i].callee != NULL)
      runs += from->steps[i].node->call->count * runs_in(from->steps[i].callee, function);
  return runs;
}

/* What parameters start as, by enum initializer_kind. */
static const char *const start_names[] = {"zeros", "zeros", "ones", "normal", "uniform", "sinusoid"};

/* ---- For people ---- */

static const char *start_text(struct arena *arena, struct initializer init) {
  if (init.kind < INIT_NORMAL) return start_names[init.kind];
  return arena_printf(arena, "%s(%g, %g)", start_names[init.kind], init.a, init.b);
}

static int longest_name(const struct program *program) {
  size_t longest = strlen("parameter");
  for (int i = 0; i < program->weights->count; i++)
    if (strlen(program->weights->items[i].path) > longest) longest = strlen(program->weights->items[i].path);
  return (int)longest;
}

static void add_parameters(struct text *text, const struct program *program) {
  struct arena *arena = program->arena;
  int width = longest_name(program);
  text_printf(text, "%-*s  %-20s %-8s %-32s %14s\n", width, "parameter", "shape", "type", "start", "count");
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const struct parameter *p = weight->parameter;
    text_printf(text, "%-*s  %-20s %-8s %-32s %14s%s%s\n", width, weight->path, shape_text(arena, p->shape),
                dtype_name(p->dtype), start_text(arena, p->init), count_text(arena, shape_count(p->shape)),
                p->buffer                  ? "  buffer"
                : p->value->differentiable ? ""
                                           : "  not trained",
                weight->tied ? "  tied" : "");
  }
  text_printf(text, "%s parameters in %d tensors, %s\n", count_text(arena, program->figures.n_parameters),
              program->weights->count, bytes_text(arena, program->figures.bytes.weights));
}

static void add_inputs(struct text *text, const struct program *program) {
  const struct region *entry = program->graph->entry;
  text_printf(text, "\n%-24s  %-20s %s\n", "input", "shape", "type");
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *input = entry->inputs.items[i];
    text_printf(text, "%-24s  %-20s %s\n", input->name, shape_text(program->arena, input->shape),
                dtype_name(input->dtype));
  }
}

static void add_functions(struct text *text, const struct program *program) {
  struct arena *arena = program->arena;
  text_printf(text, "\n%-24s  %8s %14s %9s\n", "function, forward", "runs",
              arena_printf(arena, "each %s", unit(program)), "matmuls");
  for (int i = 0; i < program->functions.count; i++) {
    const struct function *function = program->functions.items[i];
    int64_t runs = runs_in(program->entry.forward, function);
    double flops = (double)runs * function_own_flops(function, false);
    double matmuls = (double)runs * function_own_flops(function, true);
    if (runs == 0) continue;
    text_printf(text, "%-24s  %8lld %14s %7.0f %%\n", function->region->name, (long long)runs,
                flops_text(arena, flops / units(program)), flops > 0 ? 100 * matmuls / flops : 0.0);
  }
  text_printf(text, "%-24s  %8s %14s %7.0f %%\n", "all", "",
              flops_text(arena, program->figures.flops_per_step / units(program)),
              program->figures.flops_per_step > 0
                  ? 100 * program->figures.matmul_flops_per_step / program->figures.flops_per_step
                  : 0.0);
}

const char *inventory_text(const struct program *program) {
  struct text text = text_in(program->arena);
  add_parameters(&text, program);
  add_inputs(&text, program);
  add_functions(&text, program);
  return text_string(&text);
}

/* ---- For programs ---- */

static json_t *shape_json(struct shape shape) {
  json_t *list = json_array();
  for (int i = 0; i < shape.rank; i++) json_array_append_new(list, json_integer((json_int_t)shape.dim[i]));
  return list;
}

static json_t *parameters_json(const struct program *program) {
  json_t *list = json_array();
  for (int i = 0; i < program->weights->count; i++) {
    const struct parameter *p = program->weights->items[i].parameter;
    json_array_append_new(list, json_pack("{s:s, s:o, s:s, s:s, s:f, s:f, s:I, s:b}", "name",
                                          program->weights->items[i].path, "shape", shape_json(p->shape), "dtype",
                                          dtype_name(p->dtype), "init", start_names[p->init.kind], "a", p->init.a, "b",
                                          p->init.b, "count", (json_int_t)shape_count(p->shape), "buffer", p->buffer));
  }
  return list;
}

static json_t *inputs_json(const struct program *program) {
  const struct region *entry = program->graph->entry;
  json_t *list = json_array();
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *input = entry->inputs.items[i];
    json_array_append_new(list, json_pack("{s:s, s:o, s:s}", "name", input->name, "shape", shape_json(input->shape),
                                          "dtype", dtype_name(input->dtype)));
  }
  return list;
}

static json_t *functions_json(const struct program *program) {
  json_t *list = json_array();
  for (int i = 0; i < program->functions.count; i++) {
    const struct function *function = program->functions.items[i];
    int64_t runs = runs_in(program->entry.forward, function);
    double each = (double)runs / units(program);
    if (runs == 0) continue;
    json_array_append_new(list, json_pack("{s:s, s:i, s:I, s:f, s:f}", "name", function->region->name, "line",
                                          function->region->where.line, "runs", (json_int_t)runs, "flops",
                                          each * function_own_flops(function, false), "matmul_flops",
                                          each * function_own_flops(function, true)));
  }
  return list;
}

const char *inventory_json(const struct program *program, json_t *tensors, json_t *logits) {
  json_t *root = json_pack("{s:o, s:I, s:I, s:I, s:o, s:s, s:o, s:f, s:f}", "parameters", parameters_json(program),
                           "total", (json_int_t)program->figures.n_parameters, "tied",
                           (json_int_t)program->figures.n_tied, "bytes", (json_int_t)program->figures.bytes.weights,
                           "inputs", inputs_json(program), "unit", unit(program), "functions", functions_json(program),
                           "flops_per_unit", program->figures.flops_per_step / units(program), "matmul_flops_per_unit",
                           program->figures.matmul_flops_per_step / units(program));
  if (tensors != NULL) json_object_set_new(root, "tensors", tensors);
  if (logits != NULL) json_object_set_new(root, "logits", logits);
  char *text = root != NULL ? json_dumps(root, JSON_INDENT(2)) : NULL;
  const char *copy = arena_printf(program->arena, "%s\n", text != NULL ? text : "{}");
  free(text);
  json_decref(root);
  return copy;
}
