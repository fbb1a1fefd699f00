#include "gen/plan/graph/segments.h"

#include "gen/ir/copy.h"
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"

/* A call instead of iterations of another one. */
struct segment {
  struct graph *graph;
  const struct node *whole; /* the call that is split */
  struct region *region;    /* that it is in */
  int position;             /* there: of the segment to come */
  struct value **inputs;    /* what the segment to come takes */
};

/* What a segment takes that follows another: the carried values. */
static void pass_on(struct segment *at, const struct node *node) {
  for (int i = 0; i < node->n_inputs; i++)
    if (node->call->carry[i] >= 0) at->inputs[i] = node->outputs[node->call->carry[i]];
}

static struct node *new_call(struct graph *graph, const struct node *like, struct region *callee, int count,
                             struct value *const *inputs) {
  struct node *node = node_new(graph, &op_call, inputs, like->n_inputs, like->where);
  node->call = arena_alloc(graph->arena, sizeof *node->call);
  *node->call =
      (struct call){.callee = callee, .count = count, .number = like->call->number, .carry = like->call->carry};
  size_t n_scopes = (size_t)callee->n_scopes * (size_t)count;
  node->call->scopes = arena_alloc(graph->arena, (n_scopes + 1) * sizeof *node->call->scopes);
  return node;
}

static void add_outputs(struct graph *graph, struct node *node, const struct node *like) {
  for (int i = 0; i < like->call->callee->results.count; i++) {
    struct value *value = node_output(graph, node, like->outputs[i]->shape, like->outputs[i]->dtype);
    value->name = like->outputs[i]->name;
    value->differentiable = like->outputs[i]->differentiable;
  }
}

/* Puts `count` calls of `callee` where the next segment belongs; each has `size` iterations, of which the first one is
 * `first`. */
static void add_segment(struct segment *at, struct region *callee, int first, int size, int count) {
  const struct call *whole = at->whole->call;
  struct node *node = new_call(at->graph, at->whole, callee, count, at->inputs);
  int n = whole->callee->n_scopes;
  for (int j = 0; j < size; j++)
    for (int i = 0; i < n; i++)
      for (int g = 0; g < count; g++)
        node->call->scopes[(j * n + i) * count + g] = whole->scopes[i * whole->count + first + g * size + j];
  node->call->first = whole->first + first * whole->step;
  node->call->step = size * whole->step;
  region_insert(at->graph, at->region, at->position++, node);
  add_outputs(at->graph, node, at->whole);
  pass_on(at, node);
}

static struct segment begin(struct graph *graph, struct node *node) {
  struct segment at = {.graph = graph, .whole = node, .region = node->region};
  while (at.region->nodes.items[at.position] != node) at.position++;
  at.inputs = arena_alloc(graph->arena, ((size_t)node->n_inputs + 1) * sizeof *at.inputs);
  for (int i = 0; i < node->n_inputs; i++) at.inputs[i] = node->inputs[i];
  return at;
}

/* The last segment gives what the whole gave. */
static void end(struct segment *at) {
  const struct node *last = at->region->nodes.items[at->position - 1];
  region_remove(at->region, at->whole);
  for (int i = 0; i < last->n_outputs; i++) region_replace(at->region, at->whole->outputs[i], last->outputs[i]);
}

/* ---- Groups ---- */

static void add_member(struct graph *graph, struct region *group, const struct node *whole, int j,
                       struct value **inputs) {
  struct region *callee = whole->call->callee;
  struct node *node = new_call(graph, whole, callee, 1, inputs);
  node->call->number = 0; /* a group has the stream of its first iteration */
  node->call->first = j * whole->call->step;
  for (int i = 0; i < callee->n_scopes; i++) {
    struct scope *scope = arena_alloc(graph->arena, sizeof *scope);
    *scope = (struct scope){.region = group, .formal = j * callee->n_scopes + i, .path = ""};
    node->call->scopes[i] = scope;
  }
  region_append(graph, group, node);
  add_outputs(graph, node, whole);
  for (int i = 0; i < node->n_inputs; i++)
    if (node->call->carry[i] >= 0) inputs[i] = node->outputs[node->call->carry[i]];
}

/* A group of that size of the same callee's calls; NULL: there is none yet. */
static struct region *find_group(const struct graph *graph, const struct region *callee, int size) {
  for (int i = 0; i < graph->n_regions; i++) {
    struct region *region = graph->regions[i];
    if (region->group && region->nodes.count == size && region->nodes.items[0]->call->callee == callee) return region;
  }
  return NULL;
}

static struct region *group_of(struct graph *graph, const struct node *whole, int size) {
  const struct region *callee = whole->call->callee;
  struct region *known = find_group(graph, callee, size);
  if (known != NULL) return known;
  struct region *group = region_new(graph->arena, callee->function, callee->where, callee->n_scopes * size);
  group->name = arena_printf(graph->arena, "%s_group", callee->name);
  group->group = group->recompute = true;
  struct value **inputs = arena_alloc(graph->arena, ((size_t)whole->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < whole->n_inputs; i++) {
    const struct value *input = callee->inputs.items[i];
    inputs[i] = region_input(graph, group, input->shape, input->dtype);
    inputs[i]->name = input->name;
    inputs[i]->differentiable = input->differentiable;
  }
  for (int j = 0; j < size; j++) add_member(graph, group, whole, j, inputs);
  const struct node *last = group->nodes.items[size - 1];
  for (int i = 0; i < last->n_outputs; i++) ARENA_PUSH(graph->arena, group->results, last->outputs[i]);
  name_values(graph->arena, group);
  graph_insert(graph, group, whole->region->id);
  return group;
}

void group_iterations(struct graph *graph, struct node *node, int size) {
  struct segment at = begin(graph, node);
  int count = node->call->count, groups = count / size, rest = count % size;
  if (groups > 0) add_segment(&at, group_of(graph, node, size), 0, size, groups);
  struct region *last = rest > 1 ? group_of(graph, node, rest) : node->call->callee;
  if (rest > 0) add_segment(&at, last, groups * size, rest, 1);
  node->call->callee->recompute = true;
  end(&at);
}

/* ---- Parts ---- */

/* The first `count` iterations as a call of `first`, the others as one of the callee. */
static void split_at(struct graph *graph, struct node *node, struct region *first, int count) {
  struct segment at = begin(graph, node);
  add_segment(&at, first, 0, 1, count);
  if (count < node->call->count) add_segment(&at, node->call->callee, count, 1, node->call->count - count);
  end(&at);
}

void peel_iterations(struct graph *graph, struct node *node, int count) {
  split_at(graph, node, node->call->callee, count);
}

static struct region *recomputed_copy(struct graph *graph, const struct node *node) {
  struct copying copying = {.graph = graph};
  copying.values = arena_alloc(graph->arena, ((size_t)graph->next_value + 1) * sizeof(struct value *));
  struct region *copy = copy_region(&copying, node->call->callee, "recomputed");
  copy->recompute = true;
  name_values(graph->arena, copy);
  graph_insert(graph, copy, node->region->id);
  return copy;
}

void split_iterations(struct graph *graph, struct node *node, int count, struct region **copy) {
  if (*copy == NULL) *copy = recomputed_copy(graph, node);
  split_at(graph, node, *copy, count);
}
