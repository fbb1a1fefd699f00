#include "gen/ir/evaluate.h"

#include <assert.h>
#include <string.h>

#include "gen/ir/op.h"

/* The frames of a call: one for each iteration. */
struct called {
  const struct node *node;
  struct frame_data **iterations;
};

struct frame_data {
  const struct region *region;
  const struct frame_data *forward; /* of a backward region */
  const char **scopes;              /* full names of the region's scopes */
  double **values;                  /* by value id */
  struct {
    struct called *items;
    int count, capacity;
  } calls;
};

struct gradient {
  const char *name;
  double *sum;
};

struct evaluator {
  struct arena *arena;
  const struct graph *graph;
  evaluate_parameter parameter;
  void *context;
  struct {
    struct gradient *items;
    int count, capacity;
  } gradients;
};

struct evaluator *evaluator_new(struct arena *arena, const struct graph *graph, evaluate_parameter parameter,
                                void *context) {
  struct evaluator *evaluator = arena_alloc(arena, sizeof *evaluator);
  *evaluator = (struct evaluator){.arena = arena, .graph = graph, .parameter = parameter, .context = context};
  return evaluator;
}

const double *evaluated(const struct frame_data *frame, const struct value *value) {
  if (value->region != frame->region && frame->forward != NULL) frame = frame->forward;
  assert(value->region == frame->region && frame->values[value->id] != NULL);
  return frame->values[value->id];
}

static double *new_elements(struct evaluator *evaluator, struct shape shape) {
  return arena_alloc(evaluator->arena, (size_t)shape_count(shape) * sizeof(double));
}

static const char *join_path(struct arena *arena, const char *scope, const char *path) {
  if (scope[0] == '\0' || path[0] == '\0') return scope[0] == '\0' ? path : scope;
  return arena_printf(arena, "%s.%s", scope, path);
}

static const char *parameter_name(const struct evaluator *evaluator, const struct frame_data *frame,
                                  const struct parameter *parameter) {
  return join_path(evaluator->arena, frame->scopes[parameter->scope], parameter->path);
}

static struct frame_data *run(struct evaluator *evaluator, const struct region *region, const char **scopes,
                              const struct frame_data *forward, const double *const *inputs);

/* ---- Calls ---- */

/* The full names of the callee's scopes in one iteration. */
static const char **callee_scopes(struct evaluator *evaluator, const struct frame_data *frame, const struct call *call,
                                  int iteration) {
  const char **scopes = arena_alloc(evaluator->arena, ((size_t)call->callee->n_scopes + 1) * sizeof *scopes);
  for (int i = 0; i < call->callee->n_scopes; i++) {
    const struct scope *scope = call->scopes[i * call->count + iteration];
    scopes[i] = join_path(evaluator->arena, frame->scopes[scope->formal], scope->path);
  }
  return scopes;
}

static const struct called *find_call(const struct frame_data *frame, const struct node *node) {
  for (int i = 0; i < frame->calls.count; i++)
    if (frame->calls.items[i].node == node) return &frame->calls.items[i];
  assert(!"the forward call ran");
  return NULL;
}

/* What iteration `k` takes as each input; `before` is the frame of the iteration that ran before it. */
static const double **iteration_inputs(struct evaluator *evaluator, const struct frame_data *frame,
                                       const struct node *node, int k, const struct frame_data *before) {
  const struct call *call = node->call;
  const double **inputs = arena_alloc(evaluator->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) {
    inputs[i] = evaluated(frame, node->inputs[i]);
    if (call->stacked != NULL && call->stacked[i]) inputs[i] += k * shape_count(call->callee->inputs.items[i]->shape);
    if (before != NULL && call->carry[i] >= 0)
      inputs[i] = evaluated(before, call->callee->results.items[call->carry[i]]);
  }
  return inputs;
}

/* Histories: what the carried inputs were in iteration k, or what that left, which `ran`. */
static void store_histories(struct evaluator *evaluator, struct frame_data *frame, const struct node *node, int k,
                            const double *const *inputs, const struct frame_data *ran) {
  const struct call *call = node->call;
  for (int h = 0; h < call->n_histories; h++) {
    const struct value *output = node->outputs[call->callee->results.count + h];
    int64_t count = shape_count(output->shape) / call->count;
    if (k == 0) frame->values[output->id] = new_elements(evaluator, output->shape);
    int input = call->history[h];
    bool after = call->after != NULL && call->after[h];
    const double *elements = after ? evaluated(ran, call->callee->results.items[call->carry[input]]) : inputs[input];
    memcpy(frame->values[output->id] + k * count, elements, (size_t)count * sizeof(double));
  }
}

static void run_call(struct evaluator *evaluator, struct frame_data *frame, const struct node *node) {
  const struct call *call = node->call;
  bool back = call->forward != NULL;
  bool here = back && call->forward->region == frame->region;
  const struct called *over = back ? find_call(here ? frame : frame->forward, call->forward) : NULL;
  struct called called = {.node = node};
  called.iterations = arena_alloc(evaluator->arena, (size_t)call->count * sizeof *called.iterations);
  struct frame_data *last = NULL;
  for (int i = 0; i < call->count; i++) {
    int k = back ? call->count - 1 - i : i;
    const double **inputs = iteration_inputs(evaluator, frame, node, k, last);
    const char **scopes = back ? over->iterations[k]->scopes : callee_scopes(evaluator, frame, call, k);
    last = called.iterations[k] = run(evaluator, call->callee, scopes, back ? over->iterations[k] : NULL, inputs);
    store_histories(evaluator, frame, node, k, inputs, last);
  }
  for (int r = 0; r < call->callee->results.count; r++)
    frame->values[node->outputs[r]->id] = (double *)evaluated(last, call->callee->results.items[r]);
  ARENA_PUSH(evaluator->arena, frame->calls, called);
}

/* ---- Nodes ---- */

static void run_node(struct evaluator *evaluator, struct frame_data *frame, const struct node *node) {
  if (node->call != NULL) {
    run_call(evaluator, frame, node);
    return;
  }
  for (int i = 0; i < node->body.count; i++) run_node(evaluator, frame, node->body.items[i]);
  if (node->body.count > 0) return; /* fused: the outputs are its parts' */
  const double **inputs = arena_alloc(evaluator->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  double **outputs = arena_alloc(evaluator->arena, ((size_t)node->n_outputs + 1) * sizeof *outputs);
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = evaluated(frame, node->inputs[i]);
  for (int i = 0; i < node->n_outputs; i++)
    outputs[i] = frame->values[node->outputs[i]->id] = new_elements(evaluator, node->outputs[i]->shape);
  node->kind->reference.evaluate(node, inputs, outputs);
}

/* ---- Regions ---- */

static void load_parameters(struct evaluator *evaluator, struct frame_data *frame) {
  for (int i = 0; i < frame->region->parameters.count; i++) {
    const struct parameter *parameter = &frame->region->parameters.items[i];
    const char *name = parameter_name(evaluator, frame, parameter);
    frame->values[parameter->value->id] = (double *)evaluator->parameter(evaluator->context, name, parameter);
    if (parameter->bits16 != NULL) frame->values[parameter->bits16->id] = frame->values[parameter->value->id];
  }
}

static double *gradient_sum(struct evaluator *evaluator, const char *name, struct shape shape) {
  double *known = (double *)evaluated_gradient(evaluator, name);
  if (known != NULL) return known;
  struct gradient gradient = {name, new_elements(evaluator, shape)};
  ARENA_PUSH(evaluator->arena, evaluator->gradients, gradient);
  return gradient.sum;
}

static void collect_gradients(struct evaluator *evaluator, const struct frame_data *frame) {
  for (int i = 0; i < frame->region->gradients.count; i++) {
    const struct parameter_gradient *part = &frame->region->gradients.items[i];
    const struct parameter *parameter = &frame->region->forward->parameters.items[part->parameter];
    double *sum = gradient_sum(evaluator, parameter_name(evaluator, frame, parameter), parameter->shape);
    const double *elements = evaluated(frame, part->value);
    for (int64_t k = 0; k < shape_count(parameter->shape); k++) sum[k] += elements[k];
  }
}

static struct frame_data *run(struct evaluator *evaluator, const struct region *region, const char **scopes,
                              const struct frame_data *forward, const double *const *inputs) {
  struct frame_data *frame = arena_alloc(evaluator->arena, sizeof *frame);
  *frame = (struct frame_data){.region = region, .forward = forward, .scopes = scopes};
  frame->values = arena_alloc(evaluator->arena, ((size_t)evaluator->graph->next_value + 1) * sizeof *frame->values);
  for (int i = 0; i < region->inputs.count; i++) frame->values[region->inputs.items[i]->id] = (double *)inputs[i];
  load_parameters(evaluator, frame);
  for (int i = 0; i < region->nodes.count; i++) run_node(evaluator, frame, region->nodes.items[i]);
  collect_gradients(evaluator, frame);
  return frame;
}

struct frame_data *evaluate_region(struct evaluator *evaluator, const struct region *region,
                                   const double *const *inputs) {
  const char **roots = arena_alloc(evaluator->arena, ((size_t)region->n_scopes + 1) * sizeof *roots);
  for (int i = 0; i < region->n_scopes; i++) roots[i] = "";
  return run(evaluator, region, roots, NULL, inputs);
}

static const double **inputs_by_name(struct evaluator *evaluator, const struct region *backward,
                                     const struct frame_data *forward) {
  const struct value_list *wanted = &backward->inputs, *known = &forward->region->inputs;
  const double **inputs = arena_alloc(evaluator->arena, ((size_t)wanted->count + 1) * sizeof *inputs);
  for (int i = 0; i < wanted->count; i++)
    for (int k = 0; k < known->count; k++)
      if (strcmp(wanted->items[i]->name, known->items[k]->name) == 0) inputs[i] = evaluated(forward, known->items[k]);
  return inputs;
}

struct frame_data *evaluate_backward(struct evaluator *evaluator, const struct region *backward,
                                     const struct frame_data *forward, const double *const *inputs) {
  if (inputs == NULL) inputs = inputs_by_name(evaluator, backward, forward);
  return run(evaluator, backward, forward->scopes, forward, inputs);
}

const double *evaluated_gradient(const struct evaluator *evaluator, const char *name) {
  for (int i = 0; i < evaluator->gradients.count; i++)
    if (strcmp(evaluator->gradients.items[i].name, name) == 0) return evaluator->gradients.items[i].sum;
  return NULL;
}
