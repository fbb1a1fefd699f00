#include "gen/plan/graph/cast.h"

#include <string.h>

#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/uses.h"
#include "gen/program/library.h"

/* A region for one choice of types. */
struct version {
  const struct region *of;
  enum dtype *inputs;
  bool *wide; /* by result: it must be float32 */
  struct region *made;
};
struct version_list {
  struct version *items;
  int count, capacity;
};

/* A value and its cast to another type. */
struct conversion {
  const struct value *from;
  struct value *to;
};
struct conversion_list {
  struct conversion *items;
  int count, capacity;
};

struct pass {
  struct graph *graph;
  const struct cast_rules *rules;
  const struct region *entry;
  struct version_list versions; /* callees before callers */
  int n_values;                 /* of the graph when the pass began */
};

/* The current region. */
struct body {
  struct pass *pass;
  const struct region *from;
  struct region *region; /* what it becomes */
  struct value **map;    /* by id of the original value */
  struct conversion_list conversions;
};

static struct region *version_of(struct pass *pass, const struct region *region, const enum dtype *inputs,
                                 const bool *wide);

/* ---- Conversions ---- */

/* Sets the types of a node's outputs by its kind's rule. The shapes stay, so the rule cannot fail on them. */
static bool infer_types(struct body *body, struct node *node) {
  struct shape shapes[MAX_OUTPUTS];
  enum dtype dtypes[MAX_OUTPUTS];
  const char *error = NULL;
  int n = node->kind->infer(body->pass->graph->arena, node, shapes, dtypes, &error);
  for (int i = 0; i < n; i++) node->outputs[i]->dtype = dtypes[op_described(node->kind, i)];
  return n > 0;
}

static struct value *add_cast(struct body *body, struct value *value, enum dtype dtype) {
  struct graph *graph = body->pass->graph;
  struct location where = value->producer != NULL ? value->producer->where : body->region->where;
  struct node *node = node_new(graph, op_cast_kind(dtype), &value, 1, where);
  region_append(graph, body->region, node);
  struct value *made = node_output(graph, node, value->shape, dtype);
  made->differentiable = value->differentiable;
  made->name = value_typed_name(graph->arena, value, dtype);
  return made;
}

/* The value in another floating-point type. Views go along, so that a parameter's view becomes one of its 16-bit copy.
 */
static struct value *converted(struct body *body, struct value *value, enum dtype dtype) {
  if (value->dtype == dtype || !dtype_is_float(value->dtype)) return value;
  struct graph *graph = body->pass->graph;
  for (int i = 0; i < body->conversions.count; i++)
    if (body->conversions.items[i].from == value && body->conversions.items[i].to->dtype == dtype)
      return body->conversions.items[i].to;
  struct value *to;
  if (value->kind == VALUE_PARAMETER && dtype_is_bits16(dtype)) {
    to = region_bits16_parameter(graph, body->region, value->index, dtype);
  } else if (value_is_view(value)) {
    struct value **map = arena_alloc(graph->arena, ((size_t)graph->next_value + 1) * sizeof *map);
    map[value->producer->inputs[0]->id] = converted(body, value->producer->inputs[0], dtype);
    struct node *view = node_copy(graph, value->producer, body->region, map);
    infer_types(body, view);
    to = view->outputs[0];
  } else {
    to = add_cast(body, value, dtype);
  }
  ARENA_PUSH(graph->arena, body->conversions, ((struct conversion){value, to}));
  return to;
}

/* ---- Nodes ---- */

static bool stays_wide(const struct body *body, const struct value *value) {
  const struct value *base = viewed_value(value);
  const bool *const *in_fp32 = body->pass->rules->in_fp32;
  return base->kind == VALUE_PARAMETER && in_fp32 != NULL && in_fp32[body->from->id][base->index];
}

/* Scales of codes stay as they are. */
static void convert_inputs(struct body *body, struct node *node, enum dtype dtype) {
  const int count = node->kind->types.by_codes ? 1 : node->n_inputs;
  for (int i = 0; i < count; i++) node->inputs[i] = converted(body, node->inputs[i], dtype);
}

static enum dtype widest_input(const struct node *node) {
  enum dtype widest = node->inputs[0]->dtype;
  for (int i = 1; i < node->n_inputs; i++) widest = dtype_widest(widest, node->inputs[i]->dtype);
  return widest;
}

static bool any_stays_wide(const struct body *body, const struct node *node) {
  for (int i = 0; i < node->n_inputs; i++)
    if (stays_wide(body, node->inputs[i])) return true;
  return false;
}

/* An operation of the float32 list that gives float32 whatever it reads needs no casts. */
static bool gives_float32(struct body *body, struct node *node) {
  if (node->kind->class != OP_KERNEL || !infer_types(body, node)) return false;
  for (int i = 0; i < node->n_outputs; i++)
    if (dtype_is_bits16(node->outputs[i]->dtype)) return false;
  return true;
}

/* What autocast does with the node's inputs, on the device that the program is for. */
static enum autocast_rule rule_of(const struct pass *pass, const struct node *node) {
  if (pass->rules->bits16 == DTYPE_FLOAT32) return AUTOCAST_AS_IS;
  return pass->rules->cuda ? node->autocast.cuda : node->autocast.cpu;
}

/* The type that the node runs in whatever goes in, where autocast has no say; that which goes in: it has none. */
static enum dtype own_type(const struct pass *pass, const struct node *node) {
  const enum dtype given = node->inputs[0]->dtype;
  if (pass->rules->bits16 != DTYPE_FLOAT32) return given;
  if (node->kind->types.by_codes && !pass->rules->codes_as_x) return pass->rules->codes;
  const enum op_float32 where = node->kind->types.float32;
  const bool float32 = where == FLOAT32_EVERYWHERE || (where == FLOAT32_ON_CPU && !pass->rules->cuda);
  return float32 && dtype_is_bits16(given) ? DTYPE_FLOAT32 : given;
}

/* The node in its own type; what reads its results reads them in the type that went in. */
static void convert_to_own(struct body *body, const struct node *from, struct node *node) {
  const enum dtype dtype = node->inputs[0]->dtype;
  convert_inputs(body, node, own_type(body->pass, node));
  infer_types(body, node);
  region_append(body->pass->graph, body->region, node);
  for (int i = 0; i < node->n_outputs; i++) body->map[from->outputs[i]->id] = add_cast(body, node->outputs[i], dtype);
}

static void convert_node(struct body *body, struct node *node) {
  enum autocast_rule rule = rule_of(body->pass, node);
  if (node->kind->class == OP_VIEW) rule = AUTOCAST_AS_IS;
  if (node->kind->class == OP_PARTS) rule = AUTOCAST_PROMOTE; /* the parts of one piece of memory have one type */
  if (rule == AUTOCAST_BITS16 && any_stays_wide(body, node)) rule = AUTOCAST_FLOAT32;
  if (rule == AUTOCAST_BITS16) convert_inputs(body, node, body->pass->rules->bits16);
  if (rule == AUTOCAST_PROMOTE) convert_inputs(body, node, widest_input(node));
  if (rule == AUTOCAST_FLOAT32 && !gives_float32(body, node)) convert_inputs(body, node, DTYPE_FLOAT32);
  if (infer_types(body, node)) return;
  convert_inputs(body, node, widest_input(node)); /* PyTorch refuses these; all in the widest type is what is meant */
  infer_types(body, node);
}

/* ---- Calls ---- */

/* Whether all that the region does with an input is to cast it to one 16-bit type, which becomes *dtype. */
static bool only_casts(const struct region *region, int input, enum dtype *dtype) {
  const struct value *value = region->inputs.items[input];
  int uses = 0;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++) {
      if (node->inputs[k] != value) continue;
      if (!node->kind->types.converts || uses++ > 0) return false;
      *dtype = node->outputs[0]->dtype;
    }
  }
  for (int i = 0; i < region->results.count; i++)
    if (region->results.items[i] == value) return false;
  return uses == 1 && dtype_is_bits16(*dtype);
}

/* Types of the inputs that fit the callee: what it only casts comes cast; a carried input and its result are of one
 * type. */
static struct region *fitting_version(struct body *body, const struct call *call, enum dtype *inputs) {
  struct arena *arena = body->pass->graph->arena;
  int n = call->callee->inputs.count;
  bool *wide = arena_alloc(arena, ((size_t)call->callee->results.count + 1) * sizeof(bool));
  bool *narrowed = arena_alloc(arena, ((size_t)n + 1) * sizeof(bool));
  for (;;) {
    struct region *made = version_of(body->pass, call->callee, inputs, wide);
    bool fits = true;
    for (int i = 0; i < n; i++) {
      enum dtype narrow = inputs[i];
      bool may_narrow = inputs[i] == DTYPE_FLOAT32 && !narrowed[i] && only_casts(made, i, &narrow);
      bool carried = call->count > 1 && call->carry[i] >= 0;
      enum dtype result = carried ? made->results.items[call->carry[i]]->dtype : narrow;
      if (may_narrow && result == narrow) {
        inputs[i] = narrow;
        narrowed[i] = true;
      } else if (carried && dtype_widest(inputs[i], result) != inputs[i]) {
        inputs[i] = DTYPE_FLOAT32;
      } else if (carried && result != inputs[i]) {
        wide[call->carry[i]] = true;
      } else {
        continue;
      }
      fits = false;
    }
    if (fits) return made;
  }
}

static void convert_call(struct body *body, struct node *node) {
  struct call *call = node->call;
  enum dtype *inputs = arena_alloc(body->pass->graph->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = node->inputs[i]->dtype;
  call->callee = fitting_version(body, call, inputs);
  for (int i = 0; i < node->n_inputs; i++) node->inputs[i] = converted(body, node->inputs[i], inputs[i]);
  for (int i = 0; i < node->n_outputs; i++) node->outputs[i]->dtype = call->callee->results.items[i]->dtype;
}

/* ---- Regions ---- */

static void copy_operands(struct body *body, const struct region *from, const enum dtype *inputs) {
  struct graph *graph = body->pass->graph;
  const struct pass *pass = body->pass;
  for (int i = 0; i < from->inputs.count; i++) {
    const struct value *original = from->inputs.items[i];
    struct value *input = region_input(graph, body->region, original->shape, inputs[i]);
    input->name = original->name;
    input->differentiable = original->differentiable;
    bool narrows = from == pass->entry && dtype_is_bits16(pass->rules->storage);
    body->map[original->id] = narrows ? converted(body, input, pass->rules->storage) : input;
  }
  for (int i = 0; i < from->parameters.count; i++) {
    struct parameter parameter = from->parameters.items[i];
    const struct value *original = parameter.value;
    parameter.value = value_new(graph, body->region, VALUE_PARAMETER, i, original->shape, original->dtype);
    parameter.value->name = original->name;
    parameter.value->differentiable = original->differentiable;
    ARENA_PUSH(graph->arena, body->region->parameters, parameter);
    bool bits16 = dtype_is_bits16(pass->rules->storage) && !parameter.buffer && !stays_wide(body, parameter.value);
    body->map[original->id] = bits16 ? converted(body, parameter.value, pass->rules->storage) : parameter.value;
  }
}

/* Takes out nodes that the conversions left without use. */
static void drop_unused(struct region *region) {
  for (int i = region->nodes.count - 1; i >= 0; i--) {
    const struct node *node = region->nodes.items[i];
    bool used = node->call != NULL || op_assigns(node->kind);
    for (int k = 0; k < node->n_outputs; k++) used |= value_is_used(region, node->outputs[k], NULL);
    if (!used) region_remove(region, node);
  }
}

static void fill(struct body *body, const struct region *from, const enum dtype *inputs, const bool *wide) {
  struct graph *graph = body->pass->graph;
  copy_operands(body, from, inputs);
  for (int i = 0; i < from->nodes.count; i++) {
    struct node *copy = node_copy(graph, from->nodes.items[i], body->region, body->map);
    body->region->nodes.count--; /* casts come before it */
    if (copy->call == NULL && copy->n_inputs > 0 && own_type(body->pass, copy) != copy->inputs[0]->dtype) {
      convert_to_own(body, from->nodes.items[i], copy);
      continue;
    }
    if (copy->call != NULL)
      convert_call(body, copy);
    else
      convert_node(body, copy);
    region_append(graph, body->region, copy);
  }
  for (int i = 0; i < from->results.count; i++) {
    struct value *result = body->map[from->results.items[i]->id];
    if (wide[i]) result = converted(body, result, DTYPE_FLOAT32);
    ARENA_PUSH(graph->arena, body->region->results, result);
  }
  drop_unused(body->region);
}

static struct region *version_of(struct pass *pass, const struct region *region, const enum dtype *inputs,
                                 const bool *wide) {
  struct arena *arena = pass->graph->arena;
  size_t n_inputs = (size_t)region->inputs.count, n_results = (size_t)region->results.count;
  for (int i = 0; i < pass->versions.count; i++) {
    const struct version *known = &pass->versions.items[i];
    if (known->of == region && memcmp(known->inputs, inputs, n_inputs * sizeof *inputs) == 0 &&
        memcmp(known->wide, wide, n_results * sizeof *wide) == 0)
      return known->made;
  }
  struct version version = {.of = region};
  version.inputs = arena_alloc(arena, (n_inputs + 1) * sizeof *inputs);
  version.wide = arena_alloc(arena, (n_results + 1) * sizeof *wide);
  memcpy(version.inputs, inputs, n_inputs * sizeof *inputs);
  memcpy(version.wide, wide, n_results * sizeof *wide);
  version.made = region_new(arena, region->function, region->where, region->n_scopes);
  version.made->name = region->name;
  struct body body = {.pass = pass, .from = region, .region = version.made};
  body.map = arena_alloc(arena, ((size_t)pass->n_values + 1) * sizeof *body.map);
  fill(&body, region, inputs, wide);
  ARENA_PUSH(arena, pass->versions, version);
  return version.made;
}

/* ---- Kernels that write what is cast ---- */

/* A kernel whose result is only cast to a 16-bit type writes that type: it rounds once, as the cast does. */
static void fold_casts(struct graph *graph) {
  const int *uses = count_uses(graph->arena, graph);
  for (int r = 0; r < graph->n_regions; r++) {
    struct region *region = graph->regions[r];
    for (int i = 0; i < region->nodes.count; i++) {
      const struct node *node = region->nodes.items[i];
      if (!node->kind->types.converts || !dtype_is_bits16(node->outputs[0]->dtype)) continue;
      struct value *value = node->inputs[0];
      if (value->kind != VALUE_RESULT || value->dtype != DTYPE_FLOAT32 || uses[value->id] != 1) continue;
      if (value->producer->kind->class != OP_KERNEL) continue;
      if (value->producer->autocast.cpu == AUTOCAST_BITS16 || value->producer->autocast.cuda == AUTOCAST_BITS16)
        continue; /* matmuls are of one type */
      if (value->producer->kind->types.wide) continue;
      value->dtype = node->outputs[0]->dtype;
      region_replace(region, node->outputs[0], value);
      region_remove(region, node);
      i--;
    }
  }
}

static void reach(const struct region *region, const struct pass *pass, bool *reached) {
  for (int i = 0; i < pass->versions.count; i++)
    if (pass->versions.items[i].made == region) reached[i] = true;
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i]->call != NULL) reach(region->nodes.items[i]->call->callee, pass, reached);
}

static enum dtype type_of_copies(const struct graph *graph) {
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->parameters.count; i++)
      if (graph->regions[r]->parameters.items[i].bits16 != NULL)
        return graph->regions[r]->parameters.items[i].bits16->dtype;
  return DTYPE_FLOAT32;
}

enum dtype cast(struct graph *graph, const struct cast_rules *rules) {
  if (rules->bits16 == DTYPE_FLOAT32 && rules->storage == DTYPE_FLOAT32 && rules->codes == DTYPE_FLOAT32)
    return DTYPE_FLOAT32;
  struct pass pass = {.graph = graph, .rules = rules, .entry = graph->entry, .n_values = graph->next_value};
  const struct region *entry = graph->entry;
  enum dtype *inputs = arena_alloc(graph->arena, ((size_t)entry->inputs.count + 1) * sizeof *inputs);
  bool *wide = arena_alloc(graph->arena, ((size_t)entry->results.count + 1) * sizeof *wide);
  for (int i = 0; i < entry->inputs.count; i++) inputs[i] = entry->inputs.items[i]->dtype;
  wide[0] = true;
  graph->entry = version_of(&pass, entry, inputs, wide);
  bool *reached = arena_alloc(graph->arena, ((size_t)pass.versions.count + 1) * sizeof *reached);
  reach(graph->entry, &pass, reached);
  graph->n_regions = 0;
  for (int i = 0; i < pass.versions.count; i++)
    if (reached[i]) graph_add(graph, pass.versions.items[i].made);
  fold_casts(graph);
  for (int i = 0; i < graph->n_regions; i++) name_values(graph->arena, graph->regions[i]);
  return type_of_copies(graph);
}

/* ---- Gradients ---- */

/* Whether ranks exchange a value as it is. */
static bool exchanges(const struct value *value) {
  const struct node *node = value->producer;
  return node->kind->ranks.exchanged != NULL && node->kind->ranks.exchanged(node).dtype == value->dtype;
}

/* Makes a 16-bit value, which views may follow, float32 where only the gradient needs it; false when it is made
 * by what cannot say its result's type, or when others use it. */
static bool widen(const struct program *program, struct value *value, const struct region *region, const int *uses) {
  struct value *made = value;
  for (;; made = made->producer->inputs[0]) {
    if (made->kind != VALUE_RESULT || made->region != region || uses[made->id] != 1 || made->producer->call != NULL)
      return false;
    if (made->producer->kind->class == OP_PARTS || exchanges(made)) return false;
    if (!value_is_view(made)) break;
  }
  const enum dtype narrow = made->dtype;
  const bool by_library = library_has(program, made->producer);
  made->dtype = DTYPE_FLOAT32;
  if (by_library && !library_has(program, made->producer)) {
    made->dtype = narrow;
    return false;
  }
  for (struct value *at = value; at != made; at = at->producer->inputs[0]) at->dtype = DTYPE_FLOAT32;
  return true;
}

void widen_gradients(struct program *program) {
  struct graph *graph = program->graph;
  const int *uses = count_uses(graph->arena, graph);
  int n_values = graph->next_value;
  for (int r = 0; r < graph->n_regions; r++) {
    struct region *region = graph->regions[r];
    for (int i = 0; i < region->gradients.count; i++) {
      struct parameter_gradient *gradient = &region->gradients.items[i];
      if (gradient->value->dtype == DTYPE_FLOAT32 || gradient->value->id >= n_values) continue;
      if (widen(program, gradient->value, region, uses)) continue;
      struct body body = {.pass = &(struct pass){.graph = graph}, .region = region};
      gradient->value = add_cast(&body, gradient->value, DTYPE_FLOAT32);
    }
  }
}
