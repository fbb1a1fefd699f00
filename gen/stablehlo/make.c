#include "gen/stablehlo/make.h"

#include <string.h>

#include "gen/ir/region.h"
#include "gen/stablehlo/maker.h"

/* ---- main ---- */

static struct hlo take(struct maker *maker, struct hlo_operand operand, struct hlo_module *made) {
  ARENA_PUSH(maker->hlo.arena, made->arguments, operand);
  return hlo_new_argument(maker, operand.name, operand.shape, (enum hlo_type)operand.dtype);
}

/* The parameters under their full names. */
static void take_parameters(struct maker *maker, const struct hlo_parameters *list, struct hlo_module *made) {
  maker->parameters = arena_alloc(maker->hlo.arena, ((size_t)list->count + 1) * sizeof *maker->parameters);
  for (int i = 0; i < list->count; i++) {
    const struct parameter *parameter = list->items[i].parameter;
    const struct hlo_operand operand = {list->items[i].path, parameter->shape, parameter->dtype};
    maker->parameters[i] = take(maker, operand, made);
  }
}

/* The value of an input of the entry, or of its backward: a new argument where none has the name. */
static struct hlo entry_input(struct maker *maker, const struct value *input, struct hlo_module *made) {
  const struct region *entry = maker->graph->entry;
  if (hlo_value(&maker->hlo, input).item >= 0) return hlo_value(&maker->hlo, input);
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *known = entry->inputs.items[i];
    if (known != input && strcmp(known->name, input->name) == 0) return hlo_value(&maker->hlo, known);
  }
  const struct hlo_operand operand = {input->name, input->shape, input->dtype};
  const struct hlo x = take(maker, operand, made);
  hlo_set_value(&maker->hlo, input, x);
  return x;
}

/* The key of random numbers: a new argument where there is none. */
static struct hlo entry_key(struct maker *maker, struct hlo_module *made) {
  static const struct hlo_operand operand = {"key", {0}, DTYPE_INT64};
  if (maker->hlo.function->key.item < 0) {
    ARENA_PUSH(maker->hlo.arena, made->arguments, operand);
    hlo_take_key(maker, operand.name);
  }
  return maker->hlo.function->key;
}

struct hlo *hlo_call_entry(struct maker *maker, const struct region *region, const struct hlo *saved,
                           struct hlo_module *made) {
  const struct hlo_interface *interface = hlo_interface_of(maker, region);
  const struct hlo_parameters *all = &hlo_interface_of(maker, maker->graph->entry)->parameters;
  struct hlo_list arguments = {0};
  for (int i = 0; i < region->inputs.count; i++)
    hlo_list_add(maker, &arguments, entry_input(maker, region->inputs.items[i], made), NULL);
  for (int i = 0; i < interface->parameters.count; i++) {
    const struct hlo_parameter *item = &interface->parameters.items[i];
    hlo_list_add(maker, &arguments, maker->parameters[hlo_parameter_index(all, item->scope, item->path)], NULL);
  }
  const int n_saved = region->forward != NULL ? hlo_interface_of(maker, region->forward)->saved.count : 0;
  for (int i = 0; i < n_saved; i++) hlo_list_add(maker, &arguments, saved[i], NULL);
  if (interface->random) hlo_list_add(maker, &arguments, entry_key(maker, made), NULL);
  return hlo_write_call(maker, region, &arguments);
}

const struct hlo *hlo_assigned_by_entry(const struct maker *maker, const struct hlo *results) {
  const struct region *entry = maker->graph->entry;
  return results + entry->results.count + hlo_interface_of(maker, entry)->saved.count;
}

/* jax.result_info is where JAX has a result's name, too. */
static void give(struct maker *maker, struct hlo_list *given, struct hlo x, struct hlo_operand operand,
                 struct hlo_module *made) {
  hlo_list_add(maker, given, x,
               arena_printf(maker->hlo.arena, "jax.result_info = %s", hlo_quoted(maker->hlo.arena, operand.name)));
  ARENA_PUSH(maker->hlo.arena, made->results, operand);
}

/* The results of the entry or, where there is a backward, the loss and the gradients in the order of the parameters;
 * then what is assigned to parameters. */
static void give_results(struct maker *maker, const struct region *backward, const struct hlo *forward,
                         const struct hlo *back, struct hlo_list *given, struct hlo_module *made) {
  const struct region *entry = maker->graph->entry;
  const struct hlo_parameters *parameters = &hlo_interface_of(maker, entry)->parameters;
  for (int i = 0; i < (backward != NULL ? 1 : entry->results.count); i++) {
    const struct value *value = entry->results.items[i];
    const struct hlo_operand operand = {backward != NULL ? "loss" : value->name, value->shape, value->dtype};
    give(maker, given, forward[i], operand, made);
  }
  for (int i = 0; i < parameters->count && backward != NULL; i++) {
    const struct hlo_parameter *item = &parameters->items[i];
    const int at = hlo_parameter_index(&hlo_interface_of(maker, backward)->gradients, item->scope, item->path);
    const struct hlo_operand operand = {item->path, item->parameter->shape, DTYPE_FLOAT32};
    if (at >= 0) give(maker, given, back[backward->results.count + at], operand, made);
  }
  const struct hlo *assigned = hlo_assigned_by_entry(maker, forward);
  for (int i = 0; i < hlo_interface_of(maker, entry)->assigned.count; i++) {
    const struct hlo_parameter *item = &hlo_interface_of(maker, entry)->assigned.items[i];
    const struct hlo_operand operand = {item->path, item->parameter->shape, item->parameter->dtype};
    give(maker, given, assigned[i], operand, made);
  }
}

static void write_main(struct maker *maker, const struct region *backward, struct hlo_module *made) {
  const struct region *entry = maker->graph->entry;
  struct hlo_list given = {0};
  const struct hlo *back = NULL;
  hlo_begin_function(maker, entry);
  take_parameters(maker, &hlo_interface_of(maker, entry)->parameters, made);
  const struct hlo *forward = hlo_call_entry(maker, entry, NULL, made);
  if (backward != NULL) back = hlo_call_entry(maker, backward, forward + entry->results.count, made);
  give_results(maker, backward, forward, back, &given, made);
  hlo_print_function(maker, "public", "main", &given);
}

/* ---- The module ---- */

/* Marks a region and those that it calls, by id. */
static void reach(const struct region *region, bool *reached) {
  reached[region->id] = true;
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i]->call != NULL) reach(region->nodes.items[i]->call->callee, reached);
}

struct maker hlo_begin_module(struct arena *arena, const struct graph *graph, struct diagnostics *diags) {
  struct text *functions = arena_alloc(arena, sizeof *functions);
  *functions = text_in(arena);
  struct maker maker = {.hlo = {.arena = arena, .diags = diags}, .graph = graph, .out = functions};
  maker.interfaces = hlo_interfaces(arena, graph);
  return maker;
}

bool hlo_write_regions(struct maker *maker, const struct region *entry, const struct region *backward) {
  const struct graph *graph = maker->graph;
  bool *reached = arena_alloc(maker->hlo.arena, (size_t)graph->n_regions);
  reach(entry, reached);
  if (backward != NULL) reach(backward, reached);
  for (int i = 0; i < graph->n_regions && !maker->hlo.failed; i++)
    if (reached[i]) hlo_write_function(maker, graph->regions[i]);
  return !maker->hlo.failed;
}

const char *hlo_end_module(struct maker *maker, const char *name, const struct text *main,
                           const struct text *functions) {
  struct text out = text_in(maker->hlo.arena);
  text_printf(&out, "module @%s {", name);
  text_puts(&out, text_string(main));
  text_puts(&out, text_string(functions));
  text_puts(&out, "}\n");
  maker->out = &out;
  hlo_print_locations(maker);
  return text_string(&out);
}

bool hlo_make(struct arena *arena, const struct graph *graph, const char *name, struct hlo_module *made,
              struct diagnostics *diags) {
  struct maker maker = hlo_begin_module(arena, graph, diags);
  const struct region *backward = graph_backward_of(graph, graph->entry);
  struct text *functions = maker.out, entry = text_in(arena);
  *made = (struct hlo_module){0};
  if (!hlo_write_regions(&maker, graph->entry, backward)) return false;
  maker.out = &entry;
  write_main(&maker, backward, made);
  made->text = hlo_end_module(&maker, name, &entry, functions);
  return true;
}
