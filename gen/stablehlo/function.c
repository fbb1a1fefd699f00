/* The function of a region: its nodes in order, by the rules of their kinds. */
#include "gen/stablehlo/maker.h"

/* ---- Nodes ---- */

/* What the node assigns to parameters of the region. */
static void note_assigned(struct maker *maker, const struct node *node) {
  const struct hlo_parameters *parameters = &hlo_interface_of(maker, maker->region)->parameters;
  for (int i = 0; i < node->n_outputs && !node->discards; i++) {
    const struct parameter *parameter = hlo_assigned(maker->region, node, i);
    if (parameter == NULL) continue;
    hlo_assign(maker, hlo_parameter_index(parameters, parameter->scope, parameter->path),
               hlo_value(&maker->hlo, node->outputs[i]));
  }
}

static void write_node(struct maker *maker, const struct node *node) {
  const struct op_lower *rule = &node->kind->lower;
  struct stablehlo *hlo = &maker->hlo;
  hlo->node = node;
  for (int i = 0; i < node->n_inputs; i++)
    if (maker->histories[node->inputs[i]->id] != NULL && node->call == NULL)
      hlo_set_value(hlo, node->inputs[i], hlo_whole(maker, node->inputs[i]));
  if (node->call != NULL)
    hlo_write_node_call(maker, node);
  else if (rule->write != NULL)
    rule->write(hlo);
  else if (rule->operation != NULL && node->n_inputs == 1)
    hlo_result(hlo, 0, hlo_unary(hlo, rule->operation, hlo_input(hlo, 0)));
  else if (rule->operation != NULL)
    hlo_result(hlo, 0, hlo_binary(hlo, rule->operation, hlo_input(hlo, 0), hlo_input(hlo, 1)));
  else
    hlo_fail(hlo, "it has no rule for that (docs/operations.md)");
  if (!hlo->failed) note_assigned(maker, node);
}

/* ---- Functions ---- */

struct hlo hlo_new_argument(struct maker *maker, const char *name, struct shape shape, enum hlo_type type) {
  struct stablehlo *hlo = &maker->hlo;
  const struct hlo x = {.item = hlo_add_item(hlo, NULL, name, 1), .shape = shape, .type = type};
  hlo->function->items.items[x.item].type = hlo_type_of(hlo, x);
  return x;
}

void hlo_take_key(struct maker *maker, const char *name) {
  maker->hlo.function->key = hlo_new_argument(maker, name, (struct shape){0}, HLO_I64);
}

struct hlo_function *hlo_new_function(const struct maker *maker) {
  struct hlo_function *function = arena_alloc(maker->hlo.arena, sizeof *function);
  const size_t values = (size_t)maker->graph->next_value + 1;
  function->values = arena_alloc(maker->hlo.arena, values * sizeof *function->values);
  for (size_t i = 0; i < values; i++) function->values[i].item = -1;
  function->key.item = -1;
  return function;
}

void hlo_begin_function(struct maker *maker, const struct region *region) {
  const size_t values = (size_t)maker->graph->next_value + 1;
  maker->hlo.function = hlo_new_function(maker);
  maker->histories = arena_alloc(maker->hlo.arena, values * sizeof *maker->histories);
  maker->calls.count = 0;
  maker->hlo.node = NULL;
  maker->region = region;
}

/* A parameter is its value, and its copy of 16 bits is that rounded. `index`: of all; less than 0: each. */
static void set_parameters(struct maker *maker, int index) {
  const struct region *owner = maker->region->forward != NULL ? maker->region->forward : maker->region;
  const struct hlo_parameters *list = &hlo_interface_of(maker, maker->region)->parameters;
  struct stablehlo *hlo = &maker->hlo;
  for (int i = 0; i < owner->parameters.count; i++) {
    const struct parameter *parameter = &owner->parameters.items[i];
    const int at = hlo_parameter_index(list, parameter->scope, parameter->path);
    if (at < 0 || (index >= 0 && at != index)) continue;
    const struct hlo x = maker->parameters[at];
    hlo_set_value(hlo, parameter->value, x);
    if (parameter->bits16 != NULL)
      hlo_set_value(hlo, parameter->bits16, hlo_convert(hlo, x, (enum hlo_type)parameter->bits16->dtype));
  }
}

void hlo_assign(struct maker *maker, int index, struct hlo tensor) {
  maker->parameters[index] = tensor;
  set_parameters(maker, index);
}

static void take_parameters(struct maker *maker, const struct region *region) {
  const struct hlo_interface *interface = hlo_interface_of(maker, region);
  struct arena *arena = maker->hlo.arena;
  maker->parameters = arena_alloc(arena, ((size_t)interface->parameters.count + 1) * sizeof *maker->parameters);
  for (int i = 0; i < interface->parameters.count; i++) {
    const struct hlo_parameter *item = &interface->parameters.items[i];
    maker->parameters[i] =
        hlo_new_argument(maker, item->path, item->parameter->shape, (enum hlo_type)item->parameter->dtype);
  }
  set_parameters(maker, -1);
  maker->gradients = arena_alloc(arena, ((size_t)interface->gradients.count + 1) * sizeof *maker->gradients);
  for (int i = 0; i < interface->gradients.count; i++) maker->gradients[i].item = -1;
}

/* What the forward region has saved. */
static void take_saved(struct maker *maker, const struct region *region) {
  const struct hlo_saved_list *saved = &hlo_interface_of(maker, region->forward)->saved;
  for (int i = 0; i < saved->count; i++) {
    const struct hlo_saved *item = &saved->items[i];
    const struct hlo x =
        hlo_new_argument(maker, item->value->name, hlo_saved_shape(item), (enum hlo_type)item->value->dtype);
    struct hlo **parts = &maker->histories[item->value->id];
    if (item->call != NULL) {
      hlo_saved_of_call(maker, item->call, item->iteration)[item->index] = x;
    } else if (item->iteration < 0) {
      hlo_set_value(&maker->hlo, item->value, x);
    } else {
      if (*parts == NULL)
        *parts = arena_alloc(maker->hlo.arena, (size_t)item->value->producer->call->count * sizeof **parts);
      (*parts)[item->iteration] = x;
    }
  }
}

static void give_saved(struct maker *maker, const struct region *region, struct hlo_list *given) {
  const struct hlo_saved_list *saved = &hlo_interface_of(maker, region)->saved;
  for (int i = 0; i < saved->count; i++) {
    const struct hlo_saved *item = &saved->items[i];
    if (item->call != NULL)
      hlo_list_add(maker, given, hlo_saved_of_call(maker, item->call, item->iteration)[item->index], NULL);
    else if (item->iteration >= 0)
      hlo_list_add(maker, given, maker->histories[item->value->id][item->iteration], NULL);
    else
      hlo_list_add(maker, given, hlo_value(&maker->hlo, item->value), NULL);
  }
}

static void give_assigned(struct maker *maker, const struct region *region, struct hlo_list *given) {
  const struct hlo_interface *interface = hlo_interface_of(maker, region);
  for (int i = 0; i < interface->assigned.count; i++) {
    const struct hlo_parameter *item = &interface->assigned.items[i];
    hlo_list_add(maker, given, maker->parameters[hlo_parameter_index(&interface->parameters, item->scope, item->path)],
                 NULL);
  }
}

/* Those that the region's own nodes make; calls have added theirs. */
static void add_gradients(struct maker *maker, const struct region *region) {
  const struct hlo_parameters *list = &hlo_interface_of(maker, region)->gradients;
  for (int i = 0; i < region->gradients.count; i++) {
    const struct parameter_gradient *gradient = &region->gradients.items[i];
    const struct parameter *parameter = &region->forward->parameters.items[gradient->parameter];
    hlo_add_gradient(maker, hlo_parameter_index(list, parameter->scope, parameter->path),
                     hlo_whole(maker, gradient->value));
  }
}

void hlo_write_function(struct maker *maker, const struct region *region) {
  struct stablehlo *hlo = &maker->hlo;
  struct hlo_list given = {0};
  hlo_begin_function(maker, region);
  for (int i = 0; i < region->inputs.count; i++) {
    const struct value *input = region->inputs.items[i];
    hlo_set_value(hlo, input, hlo_new_argument(maker, input->name, input->shape, (enum hlo_type)input->dtype));
  }
  take_parameters(maker, region);
  if (region->forward != NULL) take_saved(maker, region);
  if (hlo_interface_of(maker, region)->random) hlo_take_key(maker, "key");
  for (int i = 0; i < region->nodes.count && !hlo->failed; i++) write_node(maker, region->nodes.items[i]);
  hlo->node = NULL;
  if (hlo->failed) return;
  add_gradients(maker, region);
  for (int i = 0; i < region->results.count; i++)
    hlo_list_add(maker, &given, hlo_whole(maker, region->results.items[i]), NULL);
  give_saved(maker, region, &given);
  for (int i = 0; i < hlo_interface_of(maker, region)->gradients.count; i++)
    hlo_list_add(maker, &given, maker->gradients[i], NULL);
  give_assigned(maker, region, &given);
  hlo_print_function(maker, "private", region->name, &given);
}
