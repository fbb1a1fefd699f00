#include <assert.h>
#include <string.h>

#include "gen/ir/builder_state.h"
#include "gen/ir/region.h"

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

struct scope *builder_scope_new(struct builder *builder, int formal, const char *path, struct initializer init) {
  struct scope *scope = arena_alloc(builder->arena, sizeof *scope);
  *scope = (struct scope){builder->frame->region, formal, path, init};
  return scope;
}

struct scope *builder_scope(struct builder *builder, const struct scope *scope, const char *name) {
  const char *path = scope->path[0] == '\0' ? arena_string(builder->arena, name)
                                            : arena_printf(builder->arena, "%s.%s", scope->path, name);
  return builder_scope_new(builder, scope->formal, path, scope->init);
}

struct scope *builder_scope_init(struct builder *builder, const struct scope *scope, struct initializer init) {
  return builder_scope_new(builder, scope->formal, scope->path, init);
}

/* ---- Nodes ---- */

/* No machine holds a tensor of 2^40 elements, and sizes in bytes stay far from overflow. */
static bool check_size(struct builder *builder, struct shape shape) {
  if (shape_count(shape) <= (int64_t)1 << 40) return true;
  builder_error(builder, "a tensor of shape %s is too large", shape_text(builder->arena, shape));
  return false;
}

/* What is changed by the optimizer, by what the model assigns to it, and by nothing. */
enum change { TRAINED, ASSIGNED, FIXED };

static bool check_alike(struct builder *builder, const struct parameter *known, const struct parameter *wanted,
                        enum change change) {
  static const char *const words[] = {"parameter", "buffer of a layer", "buffer"};
  enum change before = known->buffer ? ASSIGNED : known->value->differentiable ? TRAINED : FIXED;
  const char *path = known->path;
  if (before == change && shape_equal(known->shape, wanted->shape)) return true;
  if (before != change)
    builder_error(builder, "'%s' is a %s here but was made as a %s", path, words[change], words[before]);
  else
    builder_error(builder, "%s '%s' has shape %s here but %s before", change == TRAINED ? "parameter" : "buffer", path,
                  shape_text(builder->arena, wanted->shape), shape_text(builder->arena, known->shape));
  diag_note(builder->diags, known->where, "'%s' was made here", path);
  return false;
}

/* Waves come in pairs, and over a grid in pairs of pairs. */
static bool check_waves(struct builder *builder, const struct parameter *wanted, const char *path) {
  const struct shape shape = wanted->shape;
  const int64_t columns = shape.rank > 0 ? shape.dim[shape.rank - 1] : 1, of = wanted->init.b > 0 ? 4 : 2;
  if (wanted->init.kind != INIT_SINUSOID || columns % of == 0) return true;
  builder_error(builder, "'%s' cannot start as waves: its last extent, %lld, is no multiple of %lld", path,
                (long long)columns, (long long)of);
  return false;
}

/* The parameter of this name, made like `wanted` where there is none. */
static struct value *named(struct builder *builder, const struct scope *scope, const char *name,
                           const struct parameter *wanted, enum change change) {
  struct region *region = builder->frame->region;
  const char *path = builder_scope(builder, scope, name)->path;
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *known = &region->parameters.items[i];
    if (known->scope != scope->formal || strcmp(known->path, path) != 0) continue;
    return check_alike(builder, known, wanted, change) ? known->value : NULL;
  }
  if (!check_size(builder, wanted->shape) || !check_waves(builder, wanted, path)) return NULL;
  struct parameter parameter = *wanted;
  parameter.scope = scope->formal;
  parameter.path = path;
  parameter.where = builder->where;
  parameter.buffer = change == ASSIGNED;
  parameter.value =
      value_new(builder->graph, region, VALUE_PARAMETER, region->parameters.count, wanted->shape, wanted->dtype);
  parameter.value->differentiable = change == TRAINED;
  ARENA_PUSH(builder->arena, region->parameters, parameter);
  return parameter.value;
}

static struct value *started(struct builder *builder, const struct scope *scope, const char *name, struct shape shape,
                             struct initializer fallback, enum change change) {
  struct initializer init = scope->init.kind != INIT_DEFAULT ? scope->init : fallback;
  const struct parameter wanted = {.shape = shape, .dtype = DTYPE_FLOAT32, .init = init};
  return named(builder, scope, name, &wanted, change);
}

struct value *builder_parameter(struct builder *builder, const struct scope *scope, const char *name,
                                struct shape shape, struct initializer fallback) {
  return started(builder, scope, name, shape, fallback, TRAINED);
}

struct value *builder_fixed(struct builder *builder, const struct scope *scope, const char *name, struct shape shape,
                            struct initializer fallback) {
  return started(builder, scope, name, shape, fallback, FIXED);
}

struct value *builder_buffer(struct builder *builder, const struct scope *scope, const char *name, struct shape shape,
                             enum dtype dtype, enum initializer_kind init) {
  return named(builder, scope, name, &(struct parameter){.shape = shape, .dtype = dtype, .init = {.kind = init}},
               ASSIGNED);
}

struct value *builder_passing(struct builder *builder, const struct scope *scope, const char *name,
                              struct shape shape) {
  struct initializer zeros = {.kind = INIT_ZEROS};
  return named(builder, scope, name,
               &(struct parameter){.shape = shape, .dtype = DTYPE_FLOAT32, .init = zeros, .passing = true}, ASSIGNED);
}

static bool outputs_differentiable(const struct node *node) {
  if (node->kind->gradient == NULL) return false;
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i]->differentiable) return true;
  return false;
}

/* Whether what is known of an index stays below its limit; data is checked when it is read. */
static bool check_index(struct builder *builder, const struct node *node, int input) {
  int64_t limit = node->kind->index.limit != NULL ? node->kind->index.limit(node, input) : 0, wrong;
  if (limit == 0 || op_index_fits(node->inputs[input], limit, op_left_out(node), &wrong)) return true;
  builder_error(builder, "%s: the index is %lld at one position, where it must be within 0 and %lld", node->kind->name,
                (long long)wrong, (long long)(limit - 1));
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
  struct shape shapes[MAX_OUTPUTS];
  enum dtype dtypes[MAX_OUTPUTS];
  const char *error = NULL;
  int n_outputs = kind->infer(builder->arena, node, shapes, dtypes, &error);
  if (n_outputs == 0) {
    builder_error(builder, "%s", error != NULL ? error : kind_name);
    return NULL;
  }
  for (int i = 0; i < n_inputs; i++)
    if (!check_index(builder, node, i)) return NULL;
  for (int i = 0; i < n_outputs; i++)
    if (!check_size(builder, shapes[op_described(kind, i)])) return NULL;
  region_append(builder->graph, builder->frame->region, node);
  for (int i = 0; i < n_outputs; i++) {
    int own = op_described(kind, i);
    struct value *value = node_output(builder->graph, node, shapes[own], dtypes[own]);
    value->differentiable = dtype_is_float(dtypes[own]) && outputs_differentiable(node);
  }
  return node;
}

void builder_autocast(struct builder *builder, struct autocast rule) {
  builder->rules = true;
  builder->rule = rule;
}

struct value *builder_function(struct builder *builder, const struct op_function *function,
                               const struct argument *arguments, int count) {
  if (function->build != NULL) return function->build(builder, arguments, count);
  struct value *tensors[4];
  assert(count <= 4);
  for (int i = 0; i < count; i++) tensors[i] = arguments[i].tensor;
  return builder_op(builder, function->kind->name, tensors, count, NULL, 0);
}

struct value *builder_call(struct builder *builder, const struct op_function *function,
                           const struct argument *arguments, int count) {
  struct value *value = builder_function(builder, function, arguments, count);
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

bool builder_wants_gradient(const struct builder *builder, const struct value *value) {
  (void)builder;
  return value->differentiable;
}

void builder_name(struct builder *builder, struct value *value, const char *name) {
  if (value->name == NULL) value->name = arena_string(builder->arena, name);
}
