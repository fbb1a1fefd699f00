#include "gen/plan/graph/differentiate.h"

#include <string.h>

#include "gen/ir/copy.h"
#include "gen/ir/names.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"

/* What a backward region takes and gives, in terms of its forward region. */
struct interface {
  struct region *backward; /* NULL: the region does not depend on a parameter */
  int *of_results;         /* its first inputs: gradients of these results */
  int n_of_results;
  int *of_sums; /* its next inputs: gradients of these inputs so far, to which it adds its own */
  int n_of_sums;
  int *primals; /* its further inputs: these inputs of the forward region */
  int n_primals;
  int *of_inputs; /* its results: gradients of these inputs */
  int n_of_inputs;
  bool *shared, *carried; /* by input of the forward region: some loop gives all iterations the same, or passes it on */
};

struct pass {
  struct builder *builder;
  struct arena *arena;
  struct graph *graph;
  struct region *backward;      /* the current region */
  struct interface *interfaces; /* by forward region id */
  struct value_list *sums;      /* by value id: contributions to its gradient, in the current region */
  int n_values;
  /* By id: the copies of a region that recomputations call instead, [true] within a group but for its last call;
   * NULL: none yet. */
  struct region **again[2];
  struct {
    struct region **items;
    int count, capacity;
  } made; /* the backward regions, callees first */
};

/* A gradient has its value's type; that of a parameter's 16-bit copy is taken as it comes, since it ends in float32. */
static void contribute(struct pass *pass, const struct value *value, struct value *gradient) {
  if (gradient == NULL || value->id >= pass->n_values) return;
  if (value->kind != VALUE_PARAMETER || value->dtype == DTYPE_FLOAT32)
    gradient = builder_cast(pass->builder, gradient, value->dtype);
  ARENA_PUSH(pass->arena, pass->sums[value->id], gradient);
}

/* A number in all positions of a tensor like `value`. */
static struct value *filled(struct pass *pass, const struct value *value, double number) {
  return builder_cast(pass->builder, op_constant(pass->builder, number, value->shape), value->dtype);
}

/* The whole gradient of a value; NULL when nothing flows into it. */
static struct value *gradient_of(struct pass *pass, const struct value *value) {
  struct value_list *list = &pass->sums[value->id];
  if (list->count == 0) return NULL;
  const struct op_kind *kind = list->items[0]->producer != NULL ? list->items[0]->producer->kind : NULL;
  for (int i = 1; i < list->count; i++)
    if (list->items[i]->producer == NULL || list->items[i]->producer->kind != kind) kind = NULL;
  struct value *sum = NULL;
  if (list->count > 1 && kind != NULL && kind->sum != NULL) sum = kind->sum(pass->builder, list->items, list->count);
  if (sum == NULL) {
    sum = list->items[0];
    for (int i = 1; i < list->count; i++) sum = op_add(pass->builder, sum, list->items[i]);
  }
  list->items[0] = sum;
  list->count = 1;
  if (value->name != NULL) builder_name(pass->builder, sum, arena_printf(pass->arena, "d_%s", value->name));
  return sum;
}

/* The history of a carried input of a repeated call; made at the first request. */
static struct value *history_of(struct pass *pass, struct node *node, int input) {
  struct call *call = node->call;
  int found = history_index(call, input);
  if (found >= 0) return node->outputs[call->callee->results.count + found];
  const struct value *formal = call->callee->inputs.items[input];
  struct shape shape = {.rank = formal->shape.rank + 1, .dim = {call->count}};
  for (int i = 0; i < formal->shape.rank; i++) shape.dim[i + 1] = formal->shape.dim[i];
  int *grown = arena_alloc(pass->arena, ((size_t)call->n_histories + 1) * sizeof(int));
  for (int h = 0; h < call->n_histories; h++) grown[h] = call->history[h];
  grown[call->n_histories++] = input;
  call->history = grown;
  struct value *value = node_output(pass->graph, node, shape, formal->dtype);
  value->name = arena_printf(pass->arena, "%s_of_%s", formal->name, call->callee->name);
  return value;
}

static int index_of(const int *list, int count, int item) {
  for (int i = 0; i < count; i++)
    if (list[i] == item) return i;
  return -1;
}

/* The gradient of an input of a call so far, which the call's backward adds to instead of what contributed to it. */
static struct value *take_sum(struct pass *pass, const struct value *input, enum dtype dtype) {
  struct value *sum = input->kind != VALUE_PARAMETER ? gradient_of(pass, input) : NULL;
  if (sum == NULL) return builder_cast(pass->builder, op_constant(pass->builder, 0, input->shape), dtype);
  pass->sums[input->id].count = 0;
  return builder_cast(pass->builder, sum, dtype);
}

/* Lets a call of a backward region add to gradients so far. A loop carries them through its iterations, but for an
 * input that it passes on: each iteration has its own gradient of that. */
static void add_to_sums(struct pass *pass, const struct node *node, struct value **inputs, struct call *call) {
  const struct call *forward = node->call;
  const struct interface *interface = &pass->interfaces[forward->callee->id];
  for (int i = 0; i < interface->n_of_sums; i++) {
    int input = interface->of_sums[i], at = interface->n_of_results + i;
    enum dtype dtype = interface->backward->inputs.items[at]->dtype;
    bool passed_on = forward->count > 1 && forward->carry[input] >= 0;
    inputs[at] =
        passed_on ? filled(pass, interface->backward->inputs.items[at], 0) : take_sum(pass, node->inputs[input], dtype);
    if (forward->count > 1 && !passed_on)
      call->carry[at] = index_of(interface->of_inputs, interface->n_of_inputs, input);
  }
}

/* The call of the callee's backward region, and what it contributes. */
static void differentiate_call(struct pass *pass, struct node *node) {
  const struct call *forward = node->call;
  const struct interface *interface = &pass->interfaces[forward->callee->id];
  if (interface->backward == NULL) return;
  int before = interface->n_of_results + interface->n_of_sums, n = before + interface->n_primals;
  struct value **inputs = arena_alloc(pass->arena, ((size_t)n + 1) * sizeof *inputs);
  struct call *call = arena_alloc(pass->arena, sizeof *call);
  *call = (struct call){.callee = interface->backward,
                        .count = forward->count,
                        .number = forward->number,
                        .first = forward->first,
                        .step = forward->step,
                        .scopes = forward->scopes,
                        .forward = node};
  call->carry = arena_alloc(pass->arena, ((size_t)n + 1) * sizeof(int));
  call->stacked = arena_alloc(pass->arena, ((size_t)n + 1) * sizeof(bool));
  bool flows = false;
  for (int i = 0; i < n; i++) call->carry[i] = -1;
  for (int i = 0; i < interface->n_of_results; i++) {
    int result = interface->of_results[i];
    inputs[i] = gradient_of(pass, node->outputs[result]);
    flows |= inputs[i] != NULL;
    for (int k = 0; k < forward->callee->inputs.count && forward->count > 1; k++)
      if (forward->carry[k] == result) call->carry[i] = index_of(interface->of_inputs, interface->n_of_inputs, k);
  }
  if (!flows) return;
  for (int i = 0; i < interface->n_of_results; i++)
    if (inputs[i] == NULL) inputs[i] = filled(pass, node->outputs[interface->of_results[i]], 0);
  add_to_sums(pass, node, inputs, call);
  for (int i = 0; i < interface->n_primals; i++) {
    int primal = interface->primals[i], at = before + i;
    call->stacked[at] = forward->count > 1 && forward->carry[primal] >= 0;
    inputs[at] = call->stacked[at] ? history_of(pass, node, primal) : node->inputs[primal];
  }
  struct node *back = node_new(pass->graph, &op_call, inputs, n, node->where);
  back->call = call;
  region_append(pass->graph, pass->backward, back);
  for (int i = 0; i < interface->n_of_inputs; i++) {
    const struct value *result = interface->backward->results.items[i];
    contribute(pass, node->inputs[interface->of_inputs[i]],
               node_output(pass->graph, back, result->shape, result->dtype));
  }
}

static void differentiate_node(struct pass *pass, struct node *node) {
  struct value *d_outputs[8] = {0};
  bool flows = false;
  for (int i = 0; i < node->n_outputs; i++) {
    d_outputs[i] = gradient_of(pass, node->outputs[i]);
    flows |= d_outputs[i] != NULL;
  }
  if (!flows || node->kind->gradient == NULL) return;
  struct value **d_inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *d_inputs);
  node->kind->gradient(pass->builder, node, d_outputs, d_inputs);
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i]->differentiable) contribute(pass, node->inputs[i], d_inputs[i]);
}

/* While a backward region takes over what it uses of its forward region's inputs. */
struct adoption {
  struct pass *pass;
  struct region *backward;
  struct interface *interface;
  struct value **own;     /* by id of the forward value: its counterpart; NULL: not requested yet */
  struct node_list views; /* views of inputs, made again */
  struct node_list late;  /* what is made again right before the current node, which uses it first */
};

/* Whether a value is made again where it is used instead of being saved. */
static bool is_remade(const struct value *value) {
  const struct node *node = value->producer;
  return node != NULL && node->kind->memory.remade != NULL && node->kind->memory.remade(node);
}

static struct value *adopt_view(struct adoption *adoption, struct value *input, const struct node *view) {
  struct graph *graph = adoption->pass->graph;
  struct node *copy = node_new(graph, view->kind, &input, 1, view->where);
  memcpy(copy->attributes, view->attributes, sizeof copy->attributes);
  copy->n_attributes = view->n_attributes;
  copy->region = adoption->backward;
  copy->again = is_remade(view->outputs[0]) || (input->producer != NULL && input->producer->again);
  if (copy->again)
    ARENA_PUSH(graph->arena, adoption->late, copy);
  else
    ARENA_PUSH(graph->arena, adoption->views, copy);
  struct value *value = node_output(graph, copy, view->outputs[0]->shape, view->outputs[0]->dtype);
  value->name = view->outputs[0]->name;
  return value;
}

/* An input of the forward region becomes an input of the backward region, a view of one a view of that, and what need
 * not be saved is made again; all else is saved by the forward and stays as it is. */
static struct value *adopt(struct adoption *adoption, struct value *value) {
  struct region *backward = adoption->backward;
  bool again = value_is_view(value) || is_remade(value);
  if (value->region != backward->forward || (value->kind != VALUE_INPUT && !again)) return value;
  struct value **own = &adoption->own[value->id];
  if (*own != NULL) return *own;
  if (value->kind == VALUE_INPUT) {
    struct interface *interface = adoption->interface;
    *own = region_input(adoption->pass->graph, backward, value->shape, value->dtype);
    (*own)->name = value->name;
    interface->primals[interface->n_primals++] = value->index;
    return *own;
  }
  struct value *input = adopt(adoption, value->producer->inputs[0]);
  return *own = input->region == backward || is_remade(value) ? adopt_view(adoption, input, value->producer) : value;
}

static void take_primals(struct pass *pass, struct region *backward, struct interface *interface) {
  struct adoption adoption = {.pass = pass, .backward = backward, .interface = interface};
  adoption.own = arena_alloc(pass->arena, ((size_t)pass->graph->next_value + 1) * sizeof *adoption.own);
  interface->primals = arena_alloc(pass->arena, ((size_t)backward->forward->inputs.count + 1) * sizeof(int));
  struct node_list nodes = {0};
  for (int i = 0; i < backward->nodes.count; i++) {
    struct node *node = backward->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++) node->inputs[k] = adopt(&adoption, node->inputs[k]);
    for (int k = 0; k < adoption.late.count; k++) ARENA_PUSH(pass->arena, nodes, adoption.late.items[k]);
    adoption.late.count = 0;
    ARENA_PUSH(pass->arena, nodes, node);
  }
  for (int i = 0; i < nodes.count; i++) ARENA_PUSH(pass->arena, adoption.views, nodes.items[i]);
  backward->nodes = adoption.views;
}

/* What the gradient of the entry's result starts from. */
static struct value *seed_value(struct pass *pass, struct region *backward, const struct seed *seed,
                                const struct copying *copying, const struct value *result) {
  struct value *count = NULL;
  if (seed->count != NULL) count = op_reshape(pass->builder, copy_of(copying, seed->count), result->shape);
  if (seed->input == NULL)
    return count != NULL ? op_scale(pass->builder, count, seed->constant) : filled(pass, result, seed->constant);
  struct value *input = region_input(pass->graph, backward, result->shape, DTYPE_FLOAT32);
  input->name = seed->input;
  return count != NULL ? op_mul(pass->builder, input, count) : input;
}

static void begin_gradients(struct pass *pass, struct region *forward, const struct copying *copying,
                            struct region *backward, struct interface *interface, const struct seed *seed) {
  pass->n_values = pass->graph->next_value;
  pass->sums = arena_alloc(pass->arena, ((size_t)pass->n_values + 1) * sizeof *pass->sums);
  interface->of_results = arena_alloc(pass->arena, ((size_t)forward->results.count + 1) * sizeof(int));
  for (int i = 0; i < forward->results.count; i++) {
    struct value *result = copy_of(copying, forward->results.items[i]);
    if (!result->differentiable) continue;
    if (seed != NULL) {
      contribute(pass, result, seed_value(pass, backward, seed, copying, result));
      continue;
    }
    struct value *input = region_input(pass->graph, backward, result->shape, result->dtype);
    input->name = arena_printf(pass->arena, "d_%s", result->name);
    contribute(pass, result, input);
    interface->of_results[interface->n_of_results++] = i;
  }
}

/* Whether one kernel makes both: as its outputs, or as elementwise nodes, which fuse. */
static bool come_together(const struct value *a, const struct value *b) {
  const struct node *p = viewed_value(a)->producer, *q = viewed_value(b)->producer;
  if (p == NULL || q == NULL) return false;
  return p == q ? p->kind->class != OP_CALL : p->kind->class == OP_ELEMENTWISE && q->kind->class == OP_ELEMENTWISE;
}

/* Adds a contribution to those of a parameter. A kernel has one output for each gradient that it writes. */
static void add_contribution(struct pass *pass, struct value_list *list, struct value *gradient) {
  for (int i = 0; i < list->count; i++) {
    struct value **other = &list->items[i];
    if (!come_together(*other, gradient)) continue;
    *other = op_add(pass->builder, builder_cast(pass->builder, *other, DTYPE_FLOAT32),
                    builder_cast(pass->builder, gradient, DTYPE_FLOAT32));
    return;
  }
  ARENA_PUSH(pass->arena, *list, gradient);
}

/* What flows into a parameter and into its 16-bit copy. */
static void push_gradients(struct pass *pass, struct region *backward, int index, const struct parameter *parameter) {
  const struct value *operands[] = {parameter->value, parameter->bits16};
  struct value_list list = {0};
  for (int i = 0; i < 2 && operands[i] != NULL; i++)
    for (int k = 0; k < pass->sums[operands[i]->id].count; k++)
      add_contribution(pass, &list, pass->sums[operands[i]->id].items[k]);
  for (int k = 0; k < list.count; k++) {
    builder_name(pass->builder, list.items[k], arena_printf(pass->arena, "d_%s", parameter->value->name));
    struct parameter_gradient gradient = {.parameter = index, .value = list.items[k]};
    ARENA_PUSH(pass->arena, backward->gradients, gradient);
  }
}

/* The gradient of an input that all iterations of a loop share: the sum so far, an input of the backward region, and
 * what this call adds (NULL: nothing). It is summed in float32, as a chain of additions outside of a loop is; one that
 * is passed on from iteration to iteration has its value's type. */
static struct value *add_to_sum(struct pass *pass, struct region *backward, struct interface *interface,
                                const struct value *input, struct value *gradient) {
  enum dtype dtype = interface->carried[input->index] ? input->dtype : DTYPE_FLOAT32;
  struct value *before = region_input(pass->graph, backward, input->shape, dtype);
  before->name = arena_printf(pass->arena, "d_%s_before", input->name);
  interface->of_sums[interface->n_of_sums++] = input->index;
  if (gradient == NULL) return before;
  struct value *sum = op_add(pass->builder, before, builder_cast(pass->builder, gradient, dtype));
  builder_name(pass->builder, sum, arena_printf(pass->arena, "d_%s_sum", input->name));
  return sum;
}

static void end_gradients(struct pass *pass, struct region *forward, struct region *backward,
                          struct interface *interface) {
  for (int i = 0; i < forward->parameters.count; i++) push_gradients(pass, backward, i, &forward->parameters.items[i]);
  interface->of_inputs = arena_alloc(pass->arena, ((size_t)forward->inputs.count + 1) * sizeof(int));
  interface->of_sums = arena_alloc(pass->arena, ((size_t)forward->inputs.count + 1) * sizeof(int));
  for (int i = 0; i < forward->inputs.count; i++) {
    const struct value *input = forward->inputs.items[i];
    if (!input->differentiable) continue;
    struct value *gradient = gradient_of(pass, input);
    if (interface->shared[i])
      gradient = add_to_sum(pass, backward, interface, input, gradient);
    else if (gradient == NULL)
      gradient = filled(pass, input, 0);
    ARENA_PUSH(pass->arena, backward->results, gradient);
    interface->of_inputs[interface->n_of_inputs++] = i;
  }
}

static void differentiate_region(struct pass *pass, struct region *forward, const struct seed *seed);

/* The copy of a region that runs where a recomputation needs what it makes: it saves, as the region itself did without
 * checkpointing, and it need not give what only went out of the recomputed region. Within a group, its calls save
 * whatever is asked of them alone. */
static void add_again(struct pass *pass, struct region *region, bool within) {
  struct region **again = pass->again[within];
  if (again[region->id] != NULL) return;
  bool recompute = region->recompute && !within;
  struct copying copying = {.graph = pass->graph, .callees = recompute ? NULL : again};
  copying.values = arena_alloc(pass->arena, ((size_t)pass->graph->next_value + 1) * sizeof(struct value *));
  for (int i = 0; i < region->nodes.count && !recompute; i++)
    if (region->nodes.items[i]->call != NULL) add_again(pass, region->nodes.items[i]->call->callee, within);
  struct region *copy = copy_region(&copying, region, "again");
  pass->interfaces[copy->id].shared = pass->interfaces[region->id].shared;
  pass->interfaces[copy->id].carried = pass->interfaces[region->id].carried;
  for (int i = 0; i < copy->nodes.count; i++) copy->nodes.items[i]->discards = true;
  copy->recompute = recompute;
  name_values(pass->arena, copy);
  again[region->id] = copy;
  differentiate_region(pass, copy, NULL);
}

/* Lets the backward region begin with the nodes of its forward region. What the last call of a group gives goes out of
 * it, so that nothing but its own backward, which makes it again, needs what it saves. */
static void repeat_forward(struct pass *pass, struct region *forward, struct region *backward,
                           struct copying *copying) {
  struct node *last = forward->nodes.items[forward->nodes.count - 1];
  for (int i = 0; i < forward->nodes.count; i++) {
    struct node *node = forward->nodes.items[i];
    if (node->call != NULL && !(forward->group && node == last)) add_again(pass, node->call->callee, forward->group);
  }
  copying->callees = pass->again[forward->group];
  copying->values = arena_alloc(pass->arena, ((size_t)pass->graph->next_value + 1) * sizeof(struct value *));
  copy_nodes(copying, forward, backward);
  for (int i = 0; i < backward->nodes.count; i++)
    backward->nodes.items[i]->again = backward->nodes.items[i]->discards = true;
  if (forward->group) backward->nodes.items[backward->nodes.count - 1]->call->callee = last->call->callee;
}

/* seed: of the entry alone, else NULL. */
static void differentiate_region(struct pass *pass, struct region *forward, const struct seed *seed) {
  bool depends = false;
  for (int i = 0; i < forward->results.count; i++) depends |= forward->results.items[i]->differentiable;
  struct interface *interface = &pass->interfaces[forward->id];
  if (!depends) return;
  struct region *backward = region_new(pass->arena, forward->function, forward->where, forward->n_scopes);
  backward->name = arena_printf(pass->arena, "%s_backward", forward->name);
  backward->forward = forward;
  backward->group = forward->group;
  struct copying copying = {.graph = pass->graph};
  if (forward->recompute) repeat_forward(pass, forward, backward, &copying);
  struct node_list nodes = forward->recompute ? backward->nodes : forward->nodes;
  interface->backward = pass->backward = backward;
  builder_enter(pass->builder, backward);
  begin_gradients(pass, forward, &copying, backward, interface, seed);
  for (int i = nodes.count - 1; i >= 0; i--) {
    struct node *node = nodes.items[i];
    builder_at(pass->builder, node->where);
    if (node->call != NULL)
      differentiate_call(pass, node);
    else
      differentiate_node(pass, node);
  }
  end_gradients(pass, forward, backward, interface);
  builder_leave(pass->builder);
  take_primals(pass, backward, interface);
  name_values(pass->arena, forward); /* it may have new outputs: histories */
  name_values(pass->arena, backward);
  ARENA_PUSH(pass->arena, pass->made, backward);
}

/* Marks a region and all callees of which it saves values, by id. */
static void reach(const struct region *region, bool *reached) {
  reached[region->id] = true;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct call *call = region->nodes.items[i]->call;
    bool saves = !region->recompute || region->group;
    if (call != NULL && saves && !reached[call->callee->id]) reach(call->callee, reached);
  }
}

/* How loops use the inputs of the regions that they call. */
static void mark_inputs(struct pass *pass) {
  const struct graph *graph = pass->graph;
  for (int r = 0; r < graph->n_regions; r++) {
    const struct region *region = graph->regions[r];
    pass->interfaces[r].shared = arena_alloc(pass->arena, ((size_t)region->inputs.count + 1) * sizeof(bool));
    pass->interfaces[r].carried = arena_alloc(pass->arena, ((size_t)region->inputs.count + 1) * sizeof(bool));
  }
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct call *call = graph->regions[r]->nodes.items[i]->call;
      if (call == NULL || call->count == 1) continue;
      const struct interface *interface = &pass->interfaces[call->callee->id];
      for (int k = 0; k < call->callee->inputs.count; k++)
        *(call->carry[k] >= 0 ? &interface->carried[k] : &interface->shared[k]) = true;
    }
}

struct region *differentiate(struct builder *builder, const struct seed *seed) {
  struct graph *graph = builder_graph(builder);
  struct region *entry = graph->entry;
  builder_at(builder, entry->where);
  if (entry->results.count < 1 || shape_count(entry->results.items[0]->shape) != 1) {
    builder_error(builder, "'%s' must return one scalar, the loss; this one has shape %s", entry->function,
                  entry->results.count > 0 ? shape_text(graph->arena, entry->results.items[0]->shape) : "(nothing)");
    return NULL;
  }
  if (!entry->results.items[0]->differentiable) {
    builder_error(builder, "the loss that '%s' returns depends on no parameter", entry->function);
    return NULL;
  }
  int n = graph->n_regions;
  struct pass pass = {.builder = builder, .arena = graph->arena, .graph = graph};
  size_t most = 3 * (size_t)n; /* no copy is copied */
  pass.interfaces = arena_alloc(graph->arena, most * sizeof *pass.interfaces);
  for (int within = 0; within < 2; within++)
    pass.again[within] = arena_alloc(graph->arena, most * sizeof(struct region *));
  mark_inputs(&pass);
  bool *reached = arena_alloc(graph->arena, (size_t)n * sizeof(bool));
  reach(entry, reached);
  for (int i = 0; i < n; i++)
    if (reached[i]) differentiate_region(&pass, graph->regions[i], graph->regions[i] == entry ? seed : NULL);
  for (int i = 0; i < pass.made.count; i++) graph_add(graph, pass.made.items[i]);
  return pass.interfaces[entry->id].backward;
}
