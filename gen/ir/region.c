#include "gen/ir/region.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gen/ir/op.h"

const struct op_kind op_call = {.name = "call", .class = OP_CALL};

struct region *region_new(struct arena *arena, const char *name, struct location where, int n_scopes) {
  struct region *region = arena_alloc(arena, sizeof *region);
  region->name = region->function = name;
  region->where = where;
  region->n_scopes = n_scopes;
  return region;
}

static bool name_is_taken(const struct graph *graph, const char *name) {
  for (int i = 0; i < graph->n_regions; i++)
    if (strcmp(graph->regions[i]->name, name) == 0) return true;
  return false;
}

void graph_add(struct graph *graph, struct region *region) {
  const char *base = region->name;
  for (int k = 2; name_is_taken(graph, region->name); k++) region->name = arena_printf(graph->arena, "%s_%d", base, k);
  region->id = graph->n_regions;
  graph->regions =
      arena_grow(graph->arena, graph->regions, graph->n_regions, &graph->regions_capacity, sizeof *graph->regions);
  graph->regions[graph->n_regions++] = region;
}

void graph_insert(struct graph *graph, struct region *region, int index) {
  if (region->id >= graph->n_regions || graph->regions[region->id] != region) graph_add(graph, region);
  for (int i = region->id; i > index; i--) {
    graph->regions[i] = graph->regions[i - 1];
    graph->regions[i]->id = i;
  }
  graph->regions[index] = region;
  region->id = index;
}

struct value *value_new(struct graph *graph, struct region *region, enum value_kind kind, int index, struct shape shape,
                        enum dtype dtype) {
  struct value *value = arena_alloc(graph->arena, sizeof *value);
  *value = (struct value){
      .id = graph->next_value++, .shape = shape, .dtype = dtype, .kind = kind, .index = index, .region = region};
  return value;
}

const char *value_typed_name(struct arena *arena, const struct value *value, enum dtype dtype) {
  return value->name != NULL ? arena_printf(arena, "%s_%s", value->name, dtype_short_name(dtype)) : NULL;
}

struct value *region_bits16_parameter(struct graph *graph, struct region *region, int index, enum dtype dtype) {
  struct parameter *parameter = &region->parameters.items[index];
  const struct value *value = parameter->value;
  if (parameter->bits16 != NULL) return parameter->bits16;
  parameter->bits16 = value_new(graph, region, VALUE_PARAMETER, index, value->shape, dtype);
  parameter->bits16->differentiable = value->differentiable;
  parameter->bits16->name = value_typed_name(graph->arena, value, dtype);
  return parameter->bits16;
}

struct value *region_input(struct graph *graph, struct region *region, struct shape shape, enum dtype dtype) {
  struct value *value = value_new(graph, region, VALUE_INPUT, region->inputs.count, shape, dtype);
  ARENA_PUSH(graph->arena, region->inputs, value);
  return value;
}

struct node *node_new(struct graph *graph, const struct op_kind *kind, struct value *const *inputs, int n_inputs,
                      struct location where) {
  struct node *node = arena_alloc(graph->arena, sizeof *node);
  node->id = graph->next_node++;
  node->kind = kind;
  node->autocast = kind->types.autocast;
  node->where = where;
  node->n_inputs = n_inputs;
  node->inputs = arena_alloc(graph->arena, ((size_t)n_inputs + 1) * sizeof *node->inputs);
  for (int i = 0; i < n_inputs; i++) node->inputs[i] = inputs[i];
  return node;
}

struct value *node_output(struct graph *graph, struct node *node, struct shape shape, enum dtype dtype) {
  struct value *value = value_new(graph, node->region, VALUE_RESULT, node->n_outputs, shape, dtype);
  value->producer = node;
  int capacity = node->n_outputs;
  node->outputs = arena_grow(graph->arena, node->outputs, node->n_outputs, &capacity, sizeof *node->outputs);
  node->outputs[node->n_outputs++] = value;
  return value;
}

void node_take_output(struct graph *graph, struct node *node, struct value *value) {
  int capacity = node->n_outputs;
  node->outputs = arena_grow(graph->arena, node->outputs, node->n_outputs, &capacity, sizeof *node->outputs);
  value->producer = node;
  value->index = node->n_outputs;
  node->outputs[node->n_outputs++] = value;
}

int region_position(const struct node *node) {
  int at = 0;
  while (node->region->nodes.items[at] != node) at++;
  return at;
}

void region_append(struct graph *graph, struct region *region, struct node *node) {
  node->region = region;
  ARENA_PUSH(graph->arena, region->nodes, node);
}

void region_insert(struct graph *graph, struct region *region, int index, struct node *node) {
  region_append(graph, region, node);
  for (int i = region->nodes.count - 1; i > index; i--) region->nodes.items[i] = region->nodes.items[i - 1];
  region->nodes.items[index] = node;
}

void region_remove(struct region *region, const struct node *node) {
  int kept = 0;
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i] != node) region->nodes.items[kept++] = region->nodes.items[i];
  region->nodes.count = kept;
}

bool value_is_used(const struct region *region, const struct value *value, const struct node *but) {
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs && node != but; k++)
      if (node->inputs[k] == value) return true;
  }
  for (int i = 0; i < region->results.count; i++)
    if (region->results.items[i] == value) return true;
  return false;
}

struct node *node_copy(struct graph *graph, const struct node *node, struct region *to, struct value **map) {
  struct node *copy = node_new(graph, node->kind, node->inputs, node->n_inputs, node->where);
  for (int i = 0; i < node->n_inputs; i++)
    if (map[node->inputs[i]->id] != NULL) copy->inputs[i] = map[node->inputs[i]->id];
  memcpy(copy->attributes, node->attributes, sizeof copy->attributes);
  copy->n_attributes = node->n_attributes;
  copy->autocast = node->autocast;
  copy->discards = node->discards;
  if (node->call != NULL) {
    copy->call = arena_alloc(graph->arena, sizeof *copy->call);
    *copy->call = *node->call;
  }
  region_append(graph, to, copy);
  for (int i = 0; i < node->n_outputs; i++) {
    const struct value *output = node->outputs[i];
    struct value *value = node_output(graph, copy, output->shape, output->dtype);
    value->name = output->name;
    value->differentiable = output->differentiable;
    map[output->id] = value;
  }
  return copy;
}

void region_replace(struct region *region, const struct value *old, struct value *now) {
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] == old) node->inputs[k] = now;
  }
  for (int i = 0; i < region->results.count; i++)
    if (region->results.items[i] == old) region->results.items[i] = now;
}

bool node_makes(const struct node *node, const struct value *value) {
  for (int i = 0; i < node->n_outputs; i++)
    if (node->outputs[i] == value) return true;
  return false;
}

int history_index(const struct call *call, int input) {
  for (int h = 0; h < call->n_histories; h++)
    if (call->history[h] == input) return h;
  return -1;
}

/* ---- Equality ---- */

static bool same_initializer(struct initializer a, struct initializer b) {
  return a.kind == b.kind && a.a == b.a && a.b == b.b;
}

static bool same_attributes(const struct node *a, const struct node *b) {
  if (a->n_attributes != b->n_attributes) return false;
  for (int i = 0; i < a->n_attributes; i++) {
    const struct attribute *p = &a->attributes[i], *q = &b->attributes[i];
    if (strcmp(p->name, q->name) != 0 || p->kind != q->kind || p->integer != q->integer || p->real != q->real ||
        !shape_equal(p->ints, q->ints) || p->n_reals != q->n_reals)
      return false;
    for (int64_t k = 0; k < p->n_reals; k++)
      if (p->reals[k] != q->reals[k]) return false;
  }
  return true;
}

static bool same_call(const struct call *a, const struct call *b) {
  if (a == NULL || b == NULL) return a == b;
  if (a->callee != b->callee || a->count != b->count) return false;
  for (int i = 0; i < a->callee->n_scopes * a->count; i++)
    if (a->scopes[i]->formal != b->scopes[i]->formal || strcmp(a->scopes[i]->path, b->scopes[i]->path) != 0)
      return false;
  for (int i = 0; i < a->callee->inputs.count; i++)
    if (a->carry[i] != b->carry[i]) return false;
  return true;
}

static int node_position(const struct region *region, const struct node *node) {
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i] == node) return i;
  return -1;
}

/* Whether a of region p and b of region q have the same position in their regions. */
static bool same_position(const struct region *p, const struct value *a, const struct region *q,
                          const struct value *b) {
  if (a->kind != b->kind || a->index != b->index) return false;
  return a->kind != VALUE_RESULT || node_position(p, a->producer) == node_position(q, b->producer);
}

static bool same_node(const struct region *p, const struct node *a, const struct region *q, const struct node *b) {
  if (a->kind != b->kind || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs) return false;
  if (a->autocast.cpu != b->autocast.cpu || a->autocast.cuda != b->autocast.cuda) return false;
  if (!same_attributes(a, b) || !same_call(a->call, b->call)) return false;
  for (int i = 0; i < a->n_inputs; i++)
    if (!same_position(p, a->inputs[i], q, b->inputs[i])) return false;
  for (int i = 0; i < a->n_outputs; i++)
    if (!shape_equal(a->outputs[i]->shape, b->outputs[i]->shape)) return false;
  return true;
}

static bool same_interface(const struct region *p, const struct region *q) {
  if (p->n_scopes != q->n_scopes || p->inputs.count != q->inputs.count) return false;
  if (p->parameters.count != q->parameters.count) return false;
  for (int i = 0; i < p->inputs.count; i++) {
    const struct value *a = p->inputs.items[i], *b = q->inputs.items[i];
    if (!shape_equal(a->shape, b->shape) || a->dtype != b->dtype || a->differentiable != b->differentiable)
      return false;
  }
  for (int i = 0; i < p->parameters.count; i++) {
    const struct parameter *a = &p->parameters.items[i], *b = &q->parameters.items[i];
    if (a->scope != b->scope || strcmp(a->path, b->path) != 0 || !shape_equal(a->shape, b->shape) ||
        !same_initializer(a->init, b->init) || a->value->differentiable != b->value->differentiable)
      return false;
  }
  return true;
}

bool region_equal(const struct region *p, const struct region *q) {
  if (strcmp(p->function, q->function) != 0 || !same_interface(p, q)) return false;
  if (p->nodes.count != q->nodes.count || p->results.count != q->results.count) return false;
  for (int i = 0; i < p->nodes.count; i++)
    if (!same_node(p, p->nodes.items[i], q, q->nodes.items[i])) return false;
  for (int i = 0; i < p->results.count; i++)
    if (!same_position(p, p->results.items[i], q, q->results.items[i])) return false;
  return true;
}

void region_number_calls(struct region *region) {
  int number = 0;
  for (int i = 0; i < region->nodes.count; i++) {
    struct call *call = region->nodes.items[i]->call;
    if (call == NULL) continue;
    call->number = number++;
    call->first = 0;
    call->step = 1;
  }
}

struct region *graph_find_equal(const struct graph *graph, const struct region *region) {
  for (int i = 0; i < graph->n_regions; i++)
    if (region_equal(graph->regions[i], region)) return graph->regions[i];
  return NULL;
}

struct region *graph_backward_of(const struct graph *graph, const struct region *region) {
  for (int r = 0; r < graph->n_regions; r++)
    if (graph->regions[r]->forward == region) return graph->regions[r];
  return NULL;
}

const struct node *graph_only_call(const struct graph *graph, const struct region *callee) {
  const struct node *found = NULL;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct node *node = graph->regions[r]->nodes.items[i];
      if (node->call == NULL || node->call->callee != callee) continue;
      if (found != NULL) return NULL;
      found = node;
    }
  return found;
}

/* ---- Scopes of a loop ---- */

/* The bounds of the digits in which two paths differ first; false when they differ in anything else. */
static bool differing_number(const char *a, const char *b, size_t *start, long *left, long *right) {
  size_t i = 0;
  while (a[i] != '\0' && a[i] == b[i]) i++;
  while (i > 0 && isdigit((unsigned char)a[i - 1])) i--;
  if (!isdigit((unsigned char)a[i]) || !isdigit((unsigned char)b[i]) || (i > 0 && a[i - 1] != '.')) return false;
  char *rest_a, *rest_b;
  *left = strtol(a + i, &rest_a, 10);
  *right = strtol(b + i, &rest_b, 10);
  *start = i;
  return strcmp(rest_a, rest_b) == 0 && (*rest_a == '\0' || *rest_a == '.');
}

bool paths_progress(const char *a, const char *b, int *end) {
  size_t start;
  long left, right;
  *end = -1;
  if (strcmp(a, b) == 0) return true;
  if (!differing_number(a, b, &start, &left, &right)) return false;
  *end = (int)(start + strspn(a + start, "0123456789"));
  return true;
}

bool scopes_progress(struct scope *const *scopes, int count) {
  size_t where = 0;
  long step = 0;
  for (int k = 1; k < count; k++) {
    if (scopes[k]->formal != scopes[0]->formal) return false;
    bool same = strcmp(scopes[k]->path, scopes[k - 1]->path) == 0;
    if (same && step == 0) continue;
    size_t start;
    long left, right;
    if (same || !differing_number(scopes[k - 1]->path, scopes[k]->path, &start, &left, &right)) return false;
    if (k > 1 && (right - left != step || start != where)) return false;
    where = start;
    step = right - left;
  }
  return true;
}
