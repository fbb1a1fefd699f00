#include "gen/emit/values.h"
#include "gen/program/adapters.h"
#include "gen/program/layers.h"
#include "gen/program/quantized.h"
#include "gen/program/weights.h"

/* The row of a module's parameter in the program's tables; -1: another layer's row covers it. */
static int row_of(const struct program *program, const char *module, const char *name) {
  const struct weight *weight = weight_named(program->weights, arena_printf(program->arena, "%s.%s", module, name));
  return layers_row(program, (int)(weight - program->weights->items));
}

static void push_row(const struct program *program, struct jinja_value list, int weight) {
  int row = layers_row(program, weight);
  if (row < 0) return;
  struct jinja_value value = jinja_map(program->arena);
  set_comment(program->arena, value, "name", layers_name(program, weight));
  set_int(program->arena, value, "row", row);
  jinja_push(program->arena, list, value);
}

static void push_ignored(struct arena *arena, struct jinja_value list, const char *name) {
  struct jinja_value value = jinja_map(arena);
  set_literal(arena, value, "literal", name);
  jinja_push(arena, list, value);
}

static struct jinja_value renames_value(struct arena *arena, const struct job *job) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < job->model.n_weights_map; i++) {
    struct jinja_value value = jinja_map(arena);
    set_literal(arena, value, "from", job->model.weights_map[i].from.name);
    set_literal(arena, value, "to", job->model.weights_map[i].to.name);
    set_literal(arena, value, "path", job->model.weights_map[i].path.name);
    jinja_push(arena, list, value);
  }
  return list;
}

/* A program that does not train takes from what a run has left the parameters that this needs. */
struct jinja_value start_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  bool trains = program->kind == PROGRAM_TRAIN;
  struct jinja_value value = jinja_map(arena), fresh = jinja_list(arena), ignored = jinja_list(arena);
  for (int i = 0; i < program->weights->count && trains && job->model.weights != NULL; i++)
    if (program->weights->items[i].fresh) push_row(program, fresh, i);
  for (int i = 0; i < program->weights->count; i++)
    if (program->weights->items[i].parameter->passing) push_row(program, fresh, i);
  for (int i = 0; i < job->model.n_ignore && trains; i++) push_ignored(arena, ignored, job->model.ignore[i].name);
  if (!trains) push_ignored(arena, ignored, "*");
  set_literal(arena, value, "weights", job->model.weights);
  bool averages = program->kind == PROGRAM_EVALUATE && job->training.ema.evaluate;
  set_text(arena, value, "trained", averages ? "ema" : "");
  set_bool(arena, value, "has_prefix", job->model.weights_prefix != NULL);
  set_literal(arena, value, "prefix", job->model.weights_prefix);
  jinja_set(arena, value, "fresh", fresh);
  jinja_set(arena, value, "ignored", ignored);
  jinja_set(arena, value, "renames", renames_value(arena, job));
  return value;
}

static struct jinja_value adapter_value(const struct program *program, const struct adapter *adapter) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  set_comment(arena, value, "module", adapter->module);
  set_int(arena, value, "weight", row_of(program, adapter->module, "weight"));
  set_int(arena, value, "a", row_of(program, adapter->module, "lora_A.weight"));
  set_int(arena, value, "b", row_of(program, adapter->module, "lora_B.weight"));
  set_bool(arena, value, "in_out", adapter->in_out);
  return value;
}

struct jinja_value adapters_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  struct jinja_value value = jinja_map(arena), items = jinja_list(arena), whole = jinja_list(arena);
  if (program->adapters.count == 0) return value;
  for (int i = 0; i < program->adapters.count; i++)
    if (row_of(program, program->adapters.items[i].module, "weight") >= 0)
      jinja_push(arena, items, adapter_value(program, &program->adapters.items[i]));
  for (int i = 0; i < program->weights->count; i++)
    if (is_saved_module(job, program->weights->items[i].path)) push_row(program, whole, i);
  jinja_set(arena, value, "items", items);
  jinja_set(arena, value, "whole", whole);
  set_int(arena, value, "rank", job->model.lora.rank);
  set_real(arena, value, "alpha", job->model.lora.alpha);
  set_real(arena, value, "dropout", job->model.lora.dropout);
  set_bool(arena, value, "use_rslora", job->model.lora.use_rslora);
  set_bool(arena, value, "merge", job->model.lora.merge);
  set_real(arena, value, "scale", adapter_scale(job));
  return value;
}

/* The row of a weight's codes or scales; -1: it has none. */
static int row_of_quantized(const struct program *program, const struct weight *weight) {
  return weight != NULL ? layers_row(program, (int)(weight - program->weights->items)) : -1;
}

static const char *codes_enumerator(enum quant_type type) {
  static const char *const names[] = {
      [QUANT_NF4] = "NF4",
      [QUANT_FP4] = "FP4",
      [QUANT_INT8] = "INT8",
      [QUANT_INT8_GROUPS] = "INT8_GROUPS",
      [QUANT_INT4_GROUPS] = "INT4_GROUPS",
      [QUANT_Q8_0] = "Q8_0",
      [QUANT_Q4_0] = "Q4_0",
      [QUANT_Q4_K] = "Q4_K",
  };
  return names[type];
}

struct jinja_value quantized_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->quantized.count; i++) {
    const struct quantized *quantized = &program->quantized.items[i];
    const struct weight *weight = weight_named(program->weights, quantized->weight);
    const struct weight *absmax = quantized_buffer(program, quantized, QUANTIZED_ABSMAX);
    const struct weight *nested = quantized_buffer(program, quantized, QUANTIZED_NESTED_ABSMAX);
    const struct weight *offset = quantized_buffer(program, quantized, QUANTIZED_NESTED_OFFSET);
    if (row_of_quantized(program, weight) < 0) continue;
    struct jinja_value value = jinja_map(arena);
    set_comment(arena, value, "name", layers_name(program, (int)(weight - program->weights->items)));
    set_int(arena, value, "codes", row_of_quantized(program, weight));
    set_int(arena, value, "absmax", row_of_quantized(program, absmax));
    set_int(arena, value, "nested_absmax", row_of_quantized(program, nested));
    set_int(arena, value, "nested_offset", row_of_quantized(program, offset));
    set_bool(arena, value, "in_out", quantized->in_out);
    set_text(arena, value, "codes_as", codes_enumerator(program->job->model.quantize.type));
    set_int(arena, value, "group",
            program->job->model.quantize.group > 0 ? program->job->model.quantize.group : quantized->in);
    set_int(arena, value, "out", quantized->out);
    set_int(arena, value, "in", quantized->in);
    set_text(arena, value, "init", init_enumerator(quantized->init.kind));
    set_real(arena, value, "a", quantized->init.a);
    set_real(arena, value, "b", quantized->init.b);
    jinja_push(arena, list, value);
  }
  return list;
}
