#include "gen/ir/builder.h"

#include <assert.h>
#include <string.h>

#include "gen/ir/loops.h"
#include "gen/ir/names.h"
#include "gen/ir/region.h"

/* A region under construction and the call that opened it. */
struct frame {
  struct frame *caller;
  struct region *region;
  struct location call_site;
  struct scope **actual_scopes;
  struct value **actual_tensors;
  struct loop_list loops;
  int open_loops[16]; /* indices of the loops that are running now */
  int n_open_loops;
};

struct builder {
  struct arena *arena;
  struct diagnostics *diags;
  struct graph *graph;
  struct frame *frame;
  struct location where;
  bool rules; /* the function being built has a rule for its nodes */
  struct autocast rule;
};

struct builder *builder_on(struct graph *graph, struct diagnostics *diags) {
  struct builder *builder = arena_alloc(graph->arena, sizeof *builder);
  builder->arena = graph->arena;
  builder->diags = diags;
  builder->graph = graph;
  return builder;
}

struct builder *builder_new(struct arena *arena, struct diagnostics *diags) {
  struct graph *graph = arena_alloc(arena, sizeof *graph);
  graph->arena = arena;
  return builder_on(graph, diags);
}

struct arena *builder_arena(const struct builder *builder) {
  return builder->arena;
}

struct graph *builder_graph(const struct builder *builder) {
  return builder->graph;
}

void builder_at(struct builder *builder, struct location where) {
  builder->where = where;
}

void builder_error(struct builder *builder, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *message = arena_vprintf(builder->arena, format, args);
  va_end(args);
  diag_error(builder->diags, builder->where, "%s", message);
  for (const struct frame *frame = builder->frame; frame != NULL && frame->caller != NULL; frame = frame->caller)
    diag_note(builder->diags, frame->call_site, "in '%s', called here", frame->region->name);
}

/* ---- Regions ---- */

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

static struct scope *new_scope(struct builder *builder, int formal, const char *path, struct initializer init) {
  struct scope *scope = arena_alloc(builder->arena, sizeof *scope);
  *scope = (struct scope){builder->frame->region, formal, path, init};
  return scope;
}

void builder_begin_entry(struct builder *builder, const char *name, struct location where, struct scope **root) {
  open_region(builder, name, where, where, 1);
  *root = new_scope(builder, 0, "", (struct initializer){0});
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
    formal_scopes[i] = new_scope(builder, i, "", scopes[i]->init);
  }
  for (int i = 0; i < n_tensors; i++) {
    frame->actual_tensors[i] = tensors[i];
    formal_tensors[i] = region_input(builder->graph, frame->region, tensors[i]->shape, tensors[i]->dtype);
    formal_tensors[i]->differentiable = tensors[i]->differentiable;
  }
}

/* A formal input stands for what the caller passed; anything else is itself. */
static struct value *outer_value(const struct frame *frame, struct value *value) {
  bool formal = value->kind == VALUE_INPUT && value->region == frame->region;
  return formal ? frame->actual_tensors[value->index] : value;
}

static bool owns_parameters(const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i]->call != NULL) return true;
  return region->parameters.count > 0;
}

/* Random nodes count up in their region (attribute "site"): those that move behind `before` others go on from there. */
static void move_site(struct node *node, int64_t before) {
  for (int i = 0; i < node->n_attributes && node->kind->random; i++)
    if (strcmp(node->attributes[i].name, "site") == 0) node->attributes[i].integer += before;
}

static int64_t count_random(const struct region *region) {
  int64_t count = 0;
  for (int i = 0; i < region->nodes.count; i++) count += region->nodes.items[i]->kind->random;
  return count;
}

/* Moves the nodes of a region without parameters into its caller. Its loops go along: they are found by node ids. */
static void dissolve(struct builder *builder, const struct frame *inner, struct frame *outer) {
  int64_t before = count_random(outer->region);
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

static void number_calls(struct region *region) {
  int number = 0;
  for (int i = 0; i < region->nodes.count; i++) {
    struct call *call = region->nodes.items[i]->call;
    if (call == NULL) continue;
    call->number = number++;
    call->first = 0;
    call->step = 1;
  }
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
  bool kept = frame->caller == NULL || owns_parameters(region);
  if (kept) roll_loops(builder->graph, region, &frame->loops);
  if (kept) number_calls(region);
  builder->frame = frame->caller;
  if (frame->caller == NULL) {
    name_values(builder->arena, region);
    graph_add(builder->graph, region);
    builder->graph->entry = region;
    return;
  }
  builder->where = frame->call_site;
  if (!kept) {
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

/* ---- Scopes ---- */

struct scope *builder_scope(struct builder *builder, const struct scope *scope, const char *name) {
  const char *path = scope->path[0] == '\0' ? arena_string(builder->arena, name)
                                            : arena_printf(builder->arena, "%s.%s", scope->path, name);
  return new_scope(builder, scope->formal, path, scope->init);
}

struct scope *builder_scope_init(struct builder *builder, const struct scope *scope, struct initializer init) {
  return new_scope(builder, scope->formal, scope->path, init);
}

/* ---- Nodes ---- */

/* No machine holds a tensor of 2^40 elements, and sizes in bytes stay far from overflow. */
static bool check_size(struct builder *builder, struct shape shape) {
  if (shape_count(shape) <= (int64_t)1 << 40) return true;
  builder_error(builder, "a tensor of shape %s is too large", shape_text(builder->arena, shape));
  return false;
}

struct value *builder_parameter(struct builder *builder, const struct scope *scope, const char *name,
                                struct shape shape, struct initializer fallback) {
  struct region *region = builder->frame->region;
  const char *path = builder_scope(builder, scope, name)->path;
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *known = &region->parameters.items[i];
    if (known->scope != scope->formal || strcmp(known->path, path) != 0) continue;
    if (shape_equal(known->shape, shape)) return known->value;
    builder_error(builder, "parameter '%s' has shape %s here but %s before", path, shape_text(builder->arena, shape),
                  shape_text(builder->arena, known->shape));
    diag_note(builder->diags, known->where, "'%s' was made here", path);
    return NULL;
  }
  if (!check_size(builder, shape)) return NULL;
  struct parameter parameter = {.scope = scope->formal,
                                .path = path,
                                .shape = shape,
                                .dtype = DTYPE_FLOAT32,
                                .init = scope->init.kind != INIT_DEFAULT ? scope->init : fallback,
                                .where = builder->where};
  parameter.value = value_new(builder->graph, region, VALUE_PARAMETER, region->parameters.count, shape, DTYPE_FLOAT32);
  parameter.value->differentiable = true;
  ARENA_PUSH(builder->arena, region->parameters, parameter);
  return parameter.value;
}

struct attribute attribute_int(const char *name, int64_t value) {
  return (struct attribute){.name = name, .kind = ATTRIBUTE_INT, .integer = value};
}

struct attribute attribute_real(const char *name, double value) {
  return (struct attribute){.name = name, .kind = ATTRIBUTE_REAL, .real = value};
}

struct attribute attribute_ints(const char *name, struct shape value) {
  return (struct attribute){.name = name, .kind = ATTRIBUTE_INTS, .ints = value};
}

struct attribute attribute_reals(const char *name, const double *values, int64_t count) {
  return (struct attribute){.name = name, .kind = ATTRIBUTE_REALS, .reals = values, .n_reals = count};
}

static bool outputs_differentiable(const struct node *node) {
  if (node->kind->gradient == NULL) return false;
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i]->differentiable) return true;
  return false;
}

struct node *builder_node(struct builder *builder, const char *kind_name, struct value *const *inputs, int n_inputs,
                          const struct attribute *attributes, int n_attributes) {
  for (int i = 0; i < n_inputs; i++)
    if (inputs[i] == NULL) return NULL;
  const struct op_kind *kind = op_kind_find(kind_name);
  assert(kind != NULL && n_attributes <= MAX_ATTRIBUTES);
  struct node *node = node_new(builder->graph, kind, inputs, n_inputs, builder->where);
  for (int i = 0; i < n_attributes; i++) node->attributes[i] = attributes[i];
  node->n_attributes = n_attributes;
  if (builder->rules) node->autocast = builder->rule;
  struct shape shapes[6];
  enum dtype dtypes[6];
  const char *error = NULL;
  int n_outputs = kind->infer(builder->arena, node, shapes, dtypes, &error);
  if (n_outputs == 0) {
    builder_error(builder, "%s", error != NULL ? error : kind_name);
    return NULL;
  }
  for (int i = 0; i < n_outputs; i++)
    if (!check_size(builder, shapes[i])) return NULL;
  region_append(builder->graph, builder->frame->region, node);
  for (int i = 0; i < n_outputs; i++) {
    struct value *value = node_output(builder->graph, node, shapes[i], dtypes[i]);
    value->differentiable = dtype_is_float(dtypes[i]) && outputs_differentiable(node);
  }
  return node;
}

void builder_autocast(struct builder *builder, struct autocast rule) {
  builder->rules = true;
  builder->rule = rule;
}

struct value *builder_call(struct builder *builder, const struct op_function *function,
                           const struct argument *arguments, int count) {
  struct value *value = function->build(builder, arguments, count);
  builder->rules = false;
  return value;
}

struct value *builder_op(struct builder *builder, const char *kind, struct value *const *inputs, int n_inputs,
                         const struct attribute *attributes, int n_attributes) {
  struct node *node = builder_node(builder, kind, inputs, n_inputs, attributes, n_attributes);
  return node != NULL ? node->outputs[0] : NULL;
}

struct value *builder_unary(struct builder *builder, const char *kind, struct value *x) {
  return builder_op(builder, kind, &x, 1, NULL, 0);
}

struct value *builder_binary(struct builder *builder, const char *kind, struct value *x, struct value *y) {
  return builder_op(builder, kind, (struct value *[]){x, y}, 2, NULL, 0);
}

struct value *builder_cast(struct builder *builder, struct value *x, enum dtype dtype) {
  return x == NULL || x->dtype == dtype ? x : builder_unary(builder, op_cast_kind(dtype)->name, x);
}

struct value *builder_unbroadcast(struct builder *builder, struct value *x, struct shape shape) {
  if (x == NULL || shape_equal(x->shape, shape)) return x;
  struct shape axes = {0};
  int added = x->shape.rank - shape.rank;
  for (int i = 0; i < x->shape.rank; i++)
    if (i < added || (shape.dim[i - added] == 1 && x->shape.dim[i] != 1)) axes.dim[axes.rank++] = i;
  struct attribute over = attribute_ints("axes", axes), dims = attribute_ints("dims", shape);
  struct value *sum = builder_op(builder, "sum", &x, 1, &over, 1);
  if (sum == NULL || shape_equal(sum->shape, shape)) return sum;
  return builder_op(builder, "reshape", &sum, 1, &dims, 1);
}

bool builder_wants_gradient(const struct builder *builder, const struct value *value) {
  (void)builder;
  return value->differentiable;
}

void builder_name(struct builder *builder, struct value *value, const char *name) {
  if (value->name == NULL) value->name = arena_string(builder->arena, name);
}
