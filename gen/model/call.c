/* Calls: of the model's own functions, of tensor functions, and of what the reader knows itself. */
#include "gen/model/evaluate.h"

#include <math.h>
#include <string.h>

/* ---- Scopes and tensors inside values ---- */

struct cells {
  struct cvalue **items;
  int count, capacity;
};

/* All cells of a kind in a value, in their order. */
static void collect(struct evaluator *evaluator, struct cvalue *cell, enum cvalue_kind kind, struct cells *cells) {
  if (cell->kind == kind) ARENA_PUSH(evaluator->arena, *cells, cell);
  if (cell->kind != CVALUE_AGGREGATE && cell->kind != CVALUE_POINTER) return;
  for (int64_t i = 0; i < cell->count; i++) collect(evaluator, &cell->items[i], kind, cells);
}

/* An argument of a region shares nothing with the caller, since its tensors become the region's own: the arrays that
 * pointers point to are copied too. So the function cannot assign the caller's elements. */
static struct cvalue separate(struct evaluator *evaluator, struct cvalue argument, struct location where) {
  if (argument.kind != CVALUE_POINTER && argument.kind != CVALUE_AGGREGATE) return argument;
  evaluate_step(evaluator, where, argument.count);
  struct cvalue *items = arena_alloc(evaluator->arena, ((size_t)argument.count + 1) * sizeof *items);
  for (int64_t i = 0; i < argument.count; i++) items[i] = separate(evaluator, argument.items[i], where);
  argument.items = items;
  argument.fixed = argument.kind == CVALUE_POINTER;
  return argument;
}

/* ---- The model's own functions ---- */

static void name_parameter(struct evaluator *evaluator, const struct type *type, const struct cvalue *cell,
                           const char *name) {
  if (cell->kind == CVALUE_TENSOR) builder_name(evaluator->builder, cell->tensor, name);
  if (cell->kind == CVALUE_POINTER || (cell->kind == CVALUE_AGGREGATE && ctype_of(type) == CTYPE_ARRAY))
    for (int64_t i = 0; i < cell->count; i++) name_parameter(evaluator, type->element, &cell->items[i], name);
  else if (cell->kind == CVALUE_AGGREGATE)
    for (int i = 0; i < type->n_members; i++)
      name_parameter(evaluator, type->members[i].type, &cell->items[i], type->members[i].name);
}

/* Runs a function whose parameters are in its slots. */
static void run_body(struct evaluator *evaluator, struct activation *activation) {
  const struct function *function = activation->function;
  enum { DEEPEST = 256 };
  if (evaluator->n_activations >= DEEPEST)
    evaluate_fail(evaluator, activation->call_site, "a recursion must end", "'%s' is called at a depth of %d calls",
                  function->name, (int)DEEPEST);
  activation->caller = evaluator->activation;
  evaluator->activation = activation;
  evaluator->n_activations++;
  enum flow flow = evaluate_statement(evaluator, function->body);
  if (flow != FLOW_RETURN && ctype_of(function->result) != CTYPE_VOID)
    evaluate_fail(evaluator, function->where, NULL, "'%s' ends without a return", function->name);
  evaluator->n_activations--;
  evaluator->activation = activation->caller;
}

/* What a region's call binds: the cells that hold the region's own scopes and tensors, and the caller's scopes. */
struct binding {
  struct cells scopes, tensors;
  struct scope **actual;
};

static void begin_region(struct evaluator *evaluator, const struct activation *activation, struct binding *binding) {
  const struct function *function = activation->function;
  size_t n_scopes = (size_t)binding->scopes.count, n_tensors = (size_t)binding->tensors.count;
  struct scope **formal_scopes = arena_alloc(evaluator->arena, (n_scopes + 1) * sizeof *formal_scopes);
  struct value **tensors = arena_alloc(evaluator->arena, (n_tensors + 1) * sizeof *tensors);
  struct value **formal_tensors = arena_alloc(evaluator->arena, (n_tensors + 1) * sizeof *formal_tensors);
  binding->actual = arena_alloc(evaluator->arena, (n_scopes + 1) * sizeof *binding->actual);
  for (size_t i = 0; i < n_scopes; i++) binding->actual[i] = binding->scopes.items[i]->scope;
  for (size_t i = 0; i < n_tensors; i++) tensors[i] = binding->tensors.items[i]->tensor;
  builder_begin_region(evaluator->builder, function->name, function->where, activation->call_site, binding->actual,
                       (int)n_scopes, tensors, (int)n_tensors, formal_scopes, formal_tensors);
  for (size_t i = 0; i < n_scopes; i++) binding->scopes.items[i]->scope = formal_scopes[i];
  for (size_t i = 0; i < n_tensors; i++) binding->tensors.items[i]->tensor = formal_tensors[i];
}

/* A returned scope belongs to the region that is left: the same position below the caller's scope. */
static struct scope *outer_scope(struct evaluator *evaluator, const struct scope *inner,
                                 const struct binding *binding) {
  struct scope *base = binding->actual[inner->formal];
  if (inner->path[0] != '\0') base = builder_scope(evaluator->builder, base, inner->path);
  return builder_scope_init(evaluator->builder, base, inner->init);
}

/* Closes the region and makes the tensors and scopes of its result the caller's. */
static void end_region(struct evaluator *evaluator, struct cvalue *result, const struct binding *binding) {
  struct cells tensors = {0}, scopes = {0};
  collect(evaluator, result, CVALUE_TENSOR, &tensors);
  collect(evaluator, result, CVALUE_SCOPE, &scopes);
  struct value **inner = arena_alloc(evaluator->arena, ((size_t)tensors.count + 1) * sizeof *inner);
  struct value **outer = arena_alloc(evaluator->arena, ((size_t)tensors.count + 1) * sizeof *outer);
  for (int i = 0; i < tensors.count; i++) inner[i] = tensors.items[i]->tensor;
  builder_end_region(evaluator->builder, inner, tensors.count, outer);
  for (int i = 0; i < tensors.count; i++) tensors.items[i]->tensor = outer[i];
  for (int i = 0; i < scopes.count; i++)
    scopes.items[i]->scope = outer_scope(evaluator, scopes.items[i]->scope, binding);
}

static void run_region(struct evaluator *evaluator, struct activation *activation) {
  const struct function *function = activation->function;
  struct binding binding = {0};
  for (int i = 0; i < function->n_parameters; i++) {
    struct cvalue *slot = &activation->slots[i];
    *slot = separate(evaluator, *slot, activation->call_site);
    collect(evaluator, slot, CVALUE_SCOPE, &binding.scopes);
    collect(evaluator, slot, CVALUE_TENSOR, &binding.tensors);
  }
  begin_region(evaluator, activation, &binding);
  for (int i = 0; i < function->n_parameters; i++)
    name_parameter(evaluator, function->parameters[i]->type, &activation->slots[i], function->parameters[i]->name);
  int loops = evaluator->n_loops;
  evaluator->n_loops = 0;
  run_body(evaluator, activation);
  evaluator->n_loops = loops;
  end_region(evaluator, &activation->result, &binding);
}

/* A function whose result holds tensors becomes a region of the graph, unless it is inline. */
static bool is_region(const struct function *function) {
  return ctype_has_tensor(function->result) && !function->is_inline;
}

struct cvalue call_function(struct evaluator *evaluator, const struct function *function,
                            const struct cvalue *arguments, struct location call_site) {
  struct activation *activation = arena_alloc(evaluator->arena, sizeof *activation);
  activation->function = function;
  activation->call_site = call_site;
  evaluate_step(evaluator, call_site, 20 + function->n_slots);
  activation->slots = arena_alloc(evaluator->arena, ((size_t)function->n_slots + 1) * sizeof(struct cvalue));
  for (int i = 0; i < function->n_parameters; i++)
    store_value(evaluator, &activation->slots[i], arguments[i], function->parameters[i]->type, NULL, call_site);
  activation->result = (struct cvalue){.kind = CVALUE_VOID};
  if (is_region(function) && evaluator->activation != NULL)
    run_region(evaluator, activation);
  else
    run_body(evaluator, activation);
  bool by_entry = evaluator->activation != NULL && evaluator->activation->caller == NULL;
  if (by_entry && strcmp(function->name, "predict") == 0) evaluator->predicted = activation->result;
  return activation->result;
}

/* ---- Tensor functions ---- */

struct arguments {
  struct argument *items;
  int count, capacity;
};

static struct argument make_argument(struct evaluator *evaluator, const struct syntax *node, struct cvalue value) {
  struct argument argument = {.where = node->where};
  switch (value.kind) {
  case CVALUE_INTEGER:
    argument.kind = ARGUMENT_INT;
    argument.integer = value.integer;
    argument.real = (double)value.integer;
    return argument;
  case CVALUE_REAL:
    if (!isfinite(value.real))
      evaluate_fail(evaluator, node->where, NULL, "a finite number is needed here, not %g", value.real);
    argument.kind = ARGUMENT_REAL;
    argument.real = value.real;
    return argument;
  case CVALUE_TENSOR:
    argument.kind = ARGUMENT_TENSOR;
    argument.tensor = value.tensor;
    return argument;
  case CVALUE_SCOPE:
    argument.kind = ARGUMENT_SCOPE;
    argument.scope = value.scope;
    return argument;
  case CVALUE_STRING:
    argument.kind = ARGUMENT_STRING;
    argument.string = value.string;
    return argument;
  default:
    evaluate_fail(evaluator, node->where, NULL, "a tensor function cannot take %s",
                  cvalue_text(evaluator->arena, value));
  }
}

/* Where what a function takes of an array ends: after as many elements as the number before it says, as functions with
 * a parameter for an array say its length, but not after the last. */
static int64_t end_of(const struct arguments *arguments, struct cvalue array, bool named) {
  const struct argument *before = arguments->count > 0 ? &arguments->items[arguments->count - 1] : NULL;
  bool counted = named && before != NULL && before->kind == ARGUMENT_INT;
  if (!counted || before->integer < 0 || before->integer > array.count - array.index) return array.count;
  return array.index + before->integer;
}

/* One argument, of a parameter that is `named` in the prototype or not; an array is its elements, one by one. */
static void add_argument(struct evaluator *evaluator, struct arguments *arguments, const struct syntax *node,
                         struct cvalue value, bool named) {
  if (value.kind == CVALUE_STRING && arguments->count > 0 && arguments->items[0].kind == ARGUMENT_SCOPE)
    evaluate_check_parameter_name(evaluator, value.string, node->where); /* below the scope */
  if (value.kind != CVALUE_POINTER) {
    ARENA_PUSH(evaluator->arena, *arguments, make_argument(evaluator, node, value));
    return;
  }
  int64_t end = end_of(arguments, value, named);
  evaluate_step(evaluator, node->where, value.count);
  for (int64_t i = value.index; i < end; i++) {
    if (value.items[i].kind == CVALUE_UNSET)
      evaluate_fail(evaluator, node->where, NULL, "element %lld of this array is read before it has a value",
                    (long long)i);
    ARENA_PUSH(evaluator->arena, *arguments, make_argument(evaluator, node, value.items[i]));
  }
}

/* After the named parameters the compiler checks nothing: there a real where a whole number belongs comes in. */
static void check_variadic(struct evaluator *evaluator, const struct syntax *node, struct cvalue value) {
  if (value.kind == CVALUE_REAL)
    evaluate_fail(evaluator, node->where, "convert it: (int)(...)", "a whole number is needed here, not %g",
                  value.real);
}

static struct cvalue call_operation(struct evaluator *evaluator, const struct op_function *function,
                                    const struct syntax *node, const struct cvalue *values) {
  struct arguments arguments = {0};
  for (int i = 0; i + 1 < node->n_parts; i++) {
    bool named = i < node->function->n_parameters;
    if (!named) check_variadic(evaluator, node->parts[i + 1], values[i]);
    add_argument(evaluator, &arguments, node->parts[i + 1], values[i], named);
  }
  evaluate_step(evaluator, node->where, 20);
  builder_at(evaluator->builder, node->where);
  int errors = evaluator->diags->errors;
  struct value *value = builder_call(evaluator->builder, function, arguments.items, arguments.count);
  if (evaluator->diags->errors > errors) evaluate_stop(evaluator);
  if (value == NULL) evaluate_fail(evaluator, node->where, NULL, "'%s' gave nothing", function->name);
  return cvalue_tensor(value);
}

/* ---- All ---- */

struct cvalue evaluate_call(struct evaluator *evaluator, const struct syntax *node) {
  const char *name = node->function->name;
  struct cvalue *values = arena_alloc(evaluator->arena, (size_t)node->n_parts * sizeof *values);
  bool assertion = strcmp(name, "__assert_fail") == 0;
  if (assertion)
    evaluate_fail(evaluator, node->where, NULL, "the model's assertion does not hold: %s",
                  evaluate(evaluator, node->parts[1]).string);
  for (int i = 0; i + 1 < node->n_parts; i++) values[i] = evaluate(evaluator, node->parts[i + 1]);
  if (model_owns(node->function)) return call_function(evaluator, node->function, values, node->where);
  const struct native *native = native_find(name);
  if (native != NULL) return native->call(evaluator, native, node, values);
  const struct op_function *function = op_function_find(name);
  if (function != NULL) return call_operation(evaluator, function, node, values);
  evaluate_fail(evaluator, node->where, NULL, "a model cannot call '%s'", name);
}
