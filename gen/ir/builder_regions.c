#include <assert.h>
#include <string.h>

#include "gen/ir/builder_state.h"
#include "gen/ir/names.h"
#include "gen/ir/region.h"

static void push_frame(struct builder *builder, struct region *region, struct location call_site) {
  struct frame *frame = arena_alloc(builder->arena, sizeof *frame);
  frame->caller = builder->frame;
  frame->region = region;
  frame->call_site = call_site;
  builder->frame = frame;
}

static void open_region(struct builder *builder, const char *name, struct location definition,
                        struct location call_site, int n_scopes) {
  push_frame(builder, region_new(builder->arena, name, definition, n_scopes), call_site);
}

void builder_begin_entry(struct builder *builder, const char *name, struct location where, struct scope **root) {
  open_region(builder, name, where, where, 1);
  *root = builder_scope_new(builder, 0, "", (struct initializer){0});
}

struct value *builder_input(struct builder *builder, const char *name, struct shape shape, enum dtype dtype) {
  struct value *value = region_input(builder->graph, builder->frame->region, shape, dtype);
  value->name = name;
  return value;
}

void builder_begin_region(struct builder *builder, const char *name, struct location definition,
                          struct location call_site, struct scope *const *scopes, int n_scopes,
                          struct value *const *tensors, int n_tensors, struct scope **formal_scopes,
                          struct value **formal_tensors) {
  open_region(builder, name, definition, call_site, n_scopes);
  struct frame *frame = builder->frame;
  frame->actual_scopes = arena_alloc(builder->arena, ((size_t)n_scopes + 1) * sizeof *scopes);
  frame->actual_tensors = arena_alloc(builder->arena, ((size_t)n_tensors + 1) * sizeof *tensors);
  for (int i = 0; i < n_scopes; i++) {
    frame->actual_scopes[i] = scopes[i];
    formal_scopes[i] = builder_scope_new(builder, i, "", scopes[i]->init);
  }
  for (int i = 0; i < n_tensors; i++) {
    frame->actual_tensors[i] = tensors[i];
    formal_tensors[i] = region_input(builder->graph, frame->region, tensors[i]->shape, tensors[i]->dtype);
    formal_tensors[i]->differentiable = tensors[i]->differentiable;
  }
}

/* A formal input is resolved to what the caller passed; anything else is itself. */
static struct value *outer_value(const struct frame *frame, struct value *value) {
  bool formal = value->kind == VALUE_INPUT && value->region == frame->region;
  return formal ? frame->actual_tensors[value->index] : value;
}

static bool owns_parameters(const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i]->call != NULL) return true;
  return region->parameters.count > 0;
}

/* Random nodes count up in their region (attribute "site"): those that move after `before` others continue from there.
 */
static void move_site(struct node *node, int64_t before) {
  for (int i = 0; i < node->n_attributes && node->kind->kernel.random; i++)
    if (strcmp(node->attributes[i].name, "site") == 0) node->attributes[i].integer += before;
}

static int64_t count_random(const struct region *region) {
  int64_t count = 0;
  for (int i = 0; i < region->nodes.count; i++) count += region->nodes.items[i]->kind->kernel.random;
  return count;
}

int64_t builder_random_count(const struct builder *builder) {
  return count_random(builder->frame->region);
}

/* Moves the nodes of a region without parameters into its caller. Its loops go along: they are found by node ids. */
static void dissolve(struct builder *builder, const struct frame *inner, struct frame *outer) {
  int64_t before = count_random(inner->region) > 0 ? count_random(outer->region) : 0;
  for (int i = 0; i < inner->region->nodes.count; i++) {
    struct node *node = inner->region->nodes.items[i];
    move_site(node, before);
    for (int k = 0; k < node->n_inputs; k++) node->inputs[k] = outer_value(inner, node->inputs[k]);
    node->region = outer->region;
    for (int k = 0; k < node->n_outputs; k++) node->outputs[k]->region = outer->region;
    ARENA_PUSH(builder->arena, outer->region->nodes, node);
  }
  for (int i = 0; i < inner->loops.count; i++) ARENA_PUSH(builder->arena, outer->loops, inner->loops.items[i]);
}

static struct node *append_node(struct builder *builder, const struct op_kind *kind, struct value *const *inputs,
                                int n_inputs) {
  struct node *node = node_new(builder->graph, kind, inputs, n_inputs, builder->where);
  region_append(builder->graph, builder->frame->region, node);
  return node;
}

/* The call of `callee` in the current region. */
static struct node *append_call(struct builder *builder, struct region *callee, const struct frame *inner) {
  struct node *node = append_node(builder, &op_call, inner->actual_tensors, callee->inputs.count);
  node->call = arena_alloc(builder->arena, sizeof *node->call);
  *node->call = (struct call){.callee = callee, .count = 1, .scopes = inner->actual_scopes};
  node->call->carry = arena_alloc(builder->arena, ((size_t)callee->inputs.count + 1) * sizeof(int));
  for (int i = 0; i < callee->inputs.count; i++) node->call->carry[i] = -1;
  for (int i = 0; i < callee->results.count; i++) {
    const struct value *result = callee->results.items[i];
    struct value *value = node_output(builder->graph, node, result->shape, result->dtype);
    value->differentiable = result->differentiable;
  }
  return node;
}

void builder_end_region(struct builder *builder, struct value *const *results, int n_results, struct value **outer) {
  struct frame *frame = builder->frame;
  struct region *region = frame->region;
  for (int i = 0; i < n_results; i++) ARENA_PUSH(builder->arena, region->results, results[i]);
  bool becomes_region = frame->caller == NULL || owns_parameters(region);
  if (becomes_region) roll_loops(builder->graph, region, &frame->loops);
  if (becomes_region) region_number_calls(region);
  builder->frame = frame->caller;
  if (frame->caller == NULL) {
    name_values(builder->arena, region);
    graph_add(builder->graph, region);
    builder->graph->entry = region;
    return;
  }
  builder->where = frame->call_site;
  if (!becomes_region) {
    dissolve(builder, frame, builder->frame);
    for (int i = 0; i < n_results; i++) outer[i] = outer_value(frame, results[i]);
    return;
  }
  struct region *same = graph_find_equal(builder->graph, region);
  if (same == NULL) {
    name_values(builder->arena, region);
    graph_add(builder->graph, region);
    same = region;
  }
  struct node *node = append_call(builder, same, frame);
  for (int i = 0; i < n_results; i++) outer[i] = node->outputs[i];
}

void builder_enter(struct builder *builder, struct region *region) {
  push_frame(builder, region, region->where);
}

void builder_leave(struct builder *builder) {
  builder->frame = builder->frame->caller;
}

void builder_abandon(struct builder *builder) {
  builder->frame = NULL;
}

/* ---- Loops ---- */

void builder_loop_begin(struct builder *builder) {
  struct frame *frame = builder->frame;
  assert(frame->n_open_loops < 16);
  ARENA_PUSH(builder->arena, frame->loops, (struct loop){0});
  frame->open_loops[frame->n_open_loops++] = frame->loops.count - 1;
}

static struct loop *running_loop(struct frame *frame) {
  return &frame->loops.items[frame->open_loops[frame->n_open_loops - 1]];
}

void builder_loop_iteration(struct builder *builder) {
  struct loop *loop = running_loop(builder->frame);
  loop->starts = arena_grow(builder->arena, loop->starts, loop->count, &loop->capacity, sizeof(int));
  loop->starts[loop->count++] = builder->graph->next_node;
}

void builder_loop_end(struct builder *builder) {
  running_loop(builder->frame)->end = builder->graph->next_node;
  builder->frame->n_open_loops--;
}
