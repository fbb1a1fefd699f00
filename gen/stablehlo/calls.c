/* Calls of regions. A loop over layers is a call for each iteration, over parameters of its own. */
#include "gen/stablehlo/maker.h"

void hlo_list_add(struct maker *maker, struct hlo_list *list, struct hlo tensor, const char *attribute) {
  const struct hlo_listed item = {tensor, attribute};
  ARENA_PUSH(maker->hlo.arena, *list, item);
}

static struct called *find_call(struct maker *maker, const struct node *node) {
  for (int i = 0; i < maker->calls.count; i++)
    if (maker->calls.items[i].node == node) return &maker->calls.items[i];
  const int count = hlo_interface_of(maker, node->call->callee)->saved.count * node->call->count;
  const struct called called = {node, arena_alloc(maker->hlo.arena, ((size_t)count + 1) * sizeof *called.saved)};
  ARENA_PUSH(maker->hlo.arena, maker->calls, called);
  return &maker->calls.items[maker->calls.count - 1];
}

struct hlo *hlo_saved_of_call(struct maker *maker, const struct node *node, int iteration) {
  return find_call(maker, node)->saved + iteration * hlo_interface_of(maker, node->call->callee)->saved.count;
}

struct hlo hlo_whole(struct maker *maker, const struct value *value) {
  const struct hlo *parts = maker->histories[value->id];
  struct hlo known = hlo_value(&maker->hlo, value);
  if (known.item >= 0 || parts == NULL) return known;
  const int count = value->producer->call->count;
  struct hlo *rows = arena_alloc(maker->hlo.arena, (size_t)count * sizeof *rows);
  struct shape row = value->shape;
  row.dim[0] = 1;
  for (int i = 0; i < count; i++) rows[i] = hlo_reshape(&maker->hlo, parts[i], row);
  return hlo_concat(&maker->hlo, rows, count, 0);
}

/* What a function gives: results, what is saved, gradients, what it assigns to parameters. */
static int count_results(const struct maker *maker, const struct region *region) {
  const struct hlo_interface *interface = hlo_interface_of(maker, region);
  return region->results.count + interface->saved.count + interface->gradients.count + interface->assigned.count;
}

struct shape hlo_saved_shape(const struct hlo_saved *saved) {
  struct shape shape = saved->value->shape;
  if (!hlo_is_history(saved->value)) return shape;
  for (int i = 1; i < shape.rank; i++) shape.dim[i - 1] = shape.dim[i];
  shape.rank--;
  return shape;
}

/* The type of result `result` of a region's function. */
static struct hlo result_type(const struct maker *maker, const struct region *region, int result) {
  const struct hlo_interface *interface = hlo_interface_of(maker, region);
  if (result < region->results.count) {
    const struct value *value = region->results.items[result];
    return (struct hlo){.shape = value->shape, .type = (enum hlo_type)value->dtype};
  }
  result -= region->results.count;
  if (result < interface->saved.count) {
    const struct hlo_saved *saved = &interface->saved.items[result];
    return (struct hlo){.shape = hlo_saved_shape(saved), .type = (enum hlo_type)saved->value->dtype};
  }
  result -= interface->saved.count;
  if (result < interface->gradients.count)
    return (struct hlo){.shape = interface->gradients.items[result].parameter->shape, .type = HLO_F32};
  const struct parameter *parameter = interface->assigned.items[result - interface->gradients.count].parameter;
  return (struct hlo){.shape = parameter->shape, .type = (enum hlo_type)parameter->dtype};
}

/* "tensor<f32>, tensor<2xf32>" */
static void add_type(struct text *types, const char *type) {
  text_printf(types, "%s%s", types->length > 0 ? ", " : "", type);
}

struct hlo *hlo_write_call(struct maker *maker, const struct region *callee, const struct hlo_list *arguments) {
  struct stablehlo *hlo = &maker->hlo;
  const int count = count_results(maker, callee);
  struct hlo *results = arena_alloc(hlo->arena, ((size_t)count + 1) * sizeof *results);
  struct text names = text_in(hlo->arena), takes = text_in(hlo->arena), gives = text_in(hlo->arena);
  for (int i = 0; i < arguments->count; i++) {
    text_printf(&names, "%s%s", i > 0 ? ", " : "", hlo_name_of(hlo, arguments->items[i].tensor));
    add_type(&takes, hlo_type_of(hlo, arguments->items[i].tensor));
  }
  for (int i = 0; i < count; i++) {
    results[i] = result_type(maker, callee, i);
    add_type(&gives, hlo_type_of(hlo, results[i]));
  }
  const char *text = arena_printf(hlo->arena, count == 1 ? "call @%s(%s) : (%s) -> %s" : "call @%s(%s) : (%s) -> (%s)",
                                  callee->name, text_string(&names), text_string(&takes), text_string(&gives));
  const int item = hlo_add_item(hlo, text, count == 1 ? NULL : callee->name, count);
  for (int i = 0; i < count; i++) results[i].item = item, results[i].result = i;
  return results;
}

void hlo_add_gradient(struct maker *maker, int index, struct hlo value) {
  struct hlo *sum = &maker->gradients[index];
  value = hlo_convert(&maker->hlo, value, HLO_F32);
  *sum = sum->item < 0 ? value : hlo_add(&maker->hlo, *sum, value);
}

/* Input `input` of a call in iteration `iteration`; `before`: the results of the iteration that ran before, or NULL. */
static struct hlo call_input(struct maker *maker, const struct node *node, int input, int iteration,
                             const struct hlo *before) {
  const struct call *call = node->call;
  if (before != NULL && call->carry[input] >= 0) return before[call->carry[input]];
  if (call->stacked == NULL || !call->stacked[input]) return hlo_whole(maker, node->inputs[input]);
  const struct hlo *parts = maker->histories[node->inputs[input]->id];
  if (parts != NULL) return parts[iteration];
  const struct hlo whole = hlo_whole(maker, node->inputs[input]);
  return hlo_reshape(&maker->hlo, hlo_slice(&maker->hlo, whole, 0, iteration, 1),
                     call->callee->inputs.items[input]->shape);
}

/* One iteration of a call: what its function takes, and what becomes of what it gives, which is returned. */
static struct hlo *write_iteration(struct maker *maker, const struct node *node, int k, const struct hlo *inputs) {
  const struct call *call = node->call;
  const struct region *callee = call->callee;
  struct stablehlo *hlo = &maker->hlo;
  const struct hlo_interface *interface = hlo_interface_of(maker, callee),
                             *own = hlo_interface_of(maker, maker->region);
  struct hlo_list arguments = {0};
  for (int i = 0; i < node->n_inputs; i++) hlo_list_add(maker, &arguments, inputs[i], NULL);
  for (int i = 0; i < interface->parameters.count; i++) {
    const int at = hlo_find_parameter(hlo->arena, &own->parameters, call, k, &interface->parameters.items[i]);
    hlo_list_add(maker, &arguments, maker->parameters[at], NULL);
  }
  const int n_saved = callee->forward != NULL ? hlo_interface_of(maker, callee->forward)->saved.count : 0;
  for (int i = 0; i < n_saved; i++)
    hlo_list_add(maker, &arguments, hlo_saved_of_call(maker, call->forward, k)[i], NULL);
  if (interface->random) hlo_list_add(maker, &arguments, hlo_call_key(hlo, call, k), NULL);
  struct hlo *results = hlo_write_call(maker, callee, &arguments);
  for (int i = 0; i < interface->saved.count; i++)
    hlo_saved_of_call(maker, node, k)[i] = results[callee->results.count + i];
  for (int i = 0; i < interface->gradients.count; i++) {
    const int at = hlo_find_parameter(hlo->arena, &own->gradients, call, k, &interface->gradients.items[i]);
    hlo_add_gradient(maker, at, results[callee->results.count + interface->saved.count + i]);
  }
  const struct hlo *assigned = results + count_results(maker, callee) - interface->assigned.count;
  for (int i = 0; i < interface->assigned.count; i++)
    hlo_assign(maker, hlo_find_parameter(hlo->arena, &own->parameters, call, k, &interface->assigned.items[i]),
               assigned[i]);
  return results;
}

/* What carried inputs were in iteration k, or what it left of them. */
static void note_histories(struct maker *maker, const struct node *node, int k, const struct hlo *inputs,
                           const struct hlo *results) {
  const struct call *call = node->call;
  for (int h = 0; h < call->n_histories; h++) {
    const struct value *value = node->outputs[call->callee->results.count + h];
    struct hlo **parts = &maker->histories[value->id];
    if (*parts == NULL) *parts = arena_alloc(maker->hlo.arena, (size_t)call->count * sizeof **parts);
    const int input = call->history[h];
    (*parts)[k] = call->after != NULL && call->after[h] ? results[call->carry[input]] : inputs[input];
  }
}

void hlo_write_node_call(struct maker *maker, const struct node *node) {
  const struct call *call = node->call;
  struct arena *arena = maker->hlo.arena;
  struct hlo *before = NULL;
  for (int i = 0; i < call->count && !maker->hlo.failed; i++) {
    const int k = call->forward != NULL ? call->count - 1 - i : i;
    struct hlo *inputs = arena_alloc(arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
    for (int n = 0; n < node->n_inputs; n++) inputs[n] = call_input(maker, node, n, k, before);
    struct hlo *results = write_iteration(maker, node, k, inputs);
    note_histories(maker, node, k, inputs, results);
    before = results;
  }
  for (int i = 0; i < call->callee->results.count && before != NULL; i++)
    hlo_set_value(&maker->hlo, node->outputs[i], before[i]);
}
