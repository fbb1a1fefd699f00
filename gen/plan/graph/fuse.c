#include "gen/plan/graph/fuse.h"

#include <math.h>
#include <string.h>

#include "gen/ir/region.h"
#include "gen/plan/graph/uses.h"

/* The most operands that one loop should stream. */
enum { MAX_PARTS = 24 };

static double fused_flops(const struct node *node) {
  double flops = 0;
  for (int i = 0; i < node->body.count; i++) flops += op_flops(node->body.items[i]);
  return flops;
}

static int fused_variants(const struct node *node, const int64_t *const *strides, const char **variants) {
  double count = (double)shape_count(node->body.items[node->body.count - 1]->outputs[0]->shape);
  (void)strides;
  return op_thread_variants(fmax(count, fused_flops(node) / 4), variants);
}

const struct op_kind op_fused = {.name = "elementwise",
                                 .class = OP_ELEMENTWISE,
                                 .template_name = "elementwise",
                                 .cost.flops = fused_flops,
                                 .choice.variants = fused_variants,
                                 .choice.what = "threads"};

/* The current region: nodes by position; each elementwise node belongs to a group, named by its latest member. */
struct pass {
  struct graph *graph;
  struct region *region;
  const int *uses; /* by value id, of the n_values values that the graph had before this pass */
  int n_values;
  int n;
  struct node **nodes;
  int *group;    /* by position: the group's number; every node starts as its own */
  int *first;    /* by group: the position of its first member */
  int *next;     /* by position: the next member of the same group, -1 for none */
  int *spans;    /* by position: how many groups have members there or before, and after it */
  int *position; /* by value id: the position of its producer in this region, -1 for none */
  int *seen;     /* by group: the last search that came to it */
  int search;
};

static bool is_fusible(const struct node *node) {
  return node->kind->class == OP_ELEMENTWISE && node->n_outputs == 1;
}

/* A node without inputs: a constant. It is cheaper to write it again than to keep it. */
static bool is_constant(const struct node *node) {
  return is_fusible(node) && node->n_inputs == 0;
}

/* Whether the group `from` needs, through other groups, something that a or b makes. What is at `cut` or before needs
 * nothing from after it. */
static bool reaches(struct pass *pass, int from, int a, int b, int cut) {
  if (from == a || from == b) return true;
  if (pass->seen[from] == pass->search) return false;
  pass->seen[from] = pass->search;
  for (int m = pass->first[from]; m >= 0; m = pass->next[m]) { /* a group runs as one: its members' needs are its own */
    const struct node *node = pass->nodes[m];
    for (int i = 0; i < node->n_inputs; i++) {
      int producer = pass->position[node->inputs[i]->id];
      if (producer > cut && pass->group[producer] != from && reaches(pass, pass->group[producer], a, b, cut))
        return true;
    }
  }
  return false;
}

/* Whether what the members of `group` need, other than a and b, needs a or b. */
static bool needs_between(struct pass *pass, int group, int a, int b, int cut) {
  for (int m = pass->first[group]; m >= 0; m = pass->next[m]) {
    const struct node *node = pass->nodes[m];
    for (int i = 0; i < node->n_inputs; i++) {
      int producer = pass->position[node->inputs[i]->id];
      if (producer <= cut || pass->group[producer] == a || pass->group[producer] == b) continue;
      if (reaches(pass, pass->group[producer], a, b, cut)) return true;
    }
  }
  return false;
}

static int count_members(const struct pass *pass, int group) {
  int count = 0;
  for (int m = pass->first[group]; m >= 0; m = pass->next[m]) count++;
  return count;
}

/* Whether groups a and b can run as one: nothing between them needs the one and feeds the other. */
static bool can_merge(struct pass *pass, int a, int b) {
  if (count_members(pass, a) + count_members(pass, b) > MAX_PARTS) return false;
  int cut = (pass->first[a] < pass->first[b] ? pass->first[a] : pass->first[b]) - 1;
  while (cut >= 0 && pass->spans[cut] > 0) cut--;
  pass->search++;
  return !needs_between(pass, a, a, b, cut) && !needs_between(pass, b, a, b, cut);
}

/* Adds to the spans of a group, which ends with the member of its own number. */
static void add_span(struct pass *pass, int group, int count) {
  for (int m = pass->first[group]; m < group; m++) pass->spans[m] += count;
}

/* Makes the members of `from` members of `to`, in their order; `to` is the latest node of both. */
static void merge(struct pass *pass, int from, int to) {
  add_span(pass, from, -1);
  add_span(pass, to, -1);
  for (int m = pass->first[from]; m >= 0; m = pass->next[m]) pass->group[m] = to;
  int *end = &pass->first[to];
  for (int a = pass->first[to], b = pass->first[from]; a >= 0 || b >= 0;) {
    int *least = b < 0 || (a >= 0 && a < b) ? &a : &b;
    *end = *least;
    end = &pass->next[*least];
    *least = pass->next[*least];
  }
  *end = -1;
  add_span(pass, to, 1);
}

static void merge_groups(struct pass *pass) {
  for (int i = 0; i < pass->n; i++) {
    const struct node *node = pass->nodes[i];
    if (!is_fusible(node) || is_constant(node)) continue;
    for (int k = 0; k < node->n_inputs; k++) {
      int producer = pass->position[node->inputs[k]->id];
      if (producer < 0 || !is_fusible(pass->nodes[producer]) || is_constant(pass->nodes[producer])) continue;
      if (!shape_equal(node->inputs[k]->shape, node->outputs[0]->shape)) continue;
      /* A value that is made again is rounded to memory before the gradient uses it, as it was in the forward. */
      if (pass->nodes[producer]->again != node->again) continue;
      int from = pass->group[producer], to = pass->group[i];
      if (from != to && can_merge(pass, from, to)) merge(pass, from, to);
    }
  }
}

static bool has_value(struct value *const *values, int count, const struct value *value) {
  for (int i = 0; i < count; i++)
    if (values[i] == value) return true;
  return false;
}

/* Inputs: what the parts use and do not make. */
static void find_inputs(struct arena *arena, struct node *fused) {
  struct value_list inputs = {0};
  for (int i = 0; i < fused->body.count; i++) {
    const struct node *part = fused->body.items[i];
    for (int k = 0; k < part->n_inputs; k++) {
      struct value *value = part->inputs[k];
      bool inside = false;
      for (int m = 0; m < i; m++) inside |= fused->body.items[m]->outputs[0] == value;
      if (!inside && !has_value(inputs.items, inputs.count, value)) ARENA_PUSH(arena, inputs, value);
    }
  }
  fused->inputs = inputs.items;
  fused->n_inputs = inputs.count;
}

static int uses_inside(const struct node *fused, const struct value *value) {
  int count = 0;
  for (int i = 0; i < fused->body.count; i++)
    for (int k = 0; k < fused->body.items[i]->n_inputs; k++) count += fused->body.items[i]->inputs[k] == value;
  return count;
}

/* Outputs: what others use of what the parts make; without `uses`, all of it. A constant's copy, which is newer than
 * the counted values, has no others. */
static void find_outputs(struct arena *arena, struct node *fused, const int *uses, int n_values) {
  struct value_list outputs = {0};
  for (int i = 0; i < fused->body.count; i++) {
    struct value *value = fused->body.items[i]->outputs[0];
    if (uses != NULL && (value->id >= n_values || uses[value->id] <= uses_inside(fused, value))) continue;
    value->producer = fused;
    value->index = outputs.count;
    ARENA_PUSH(arena, outputs, value);
  }
  fused->outputs = outputs.items;
  fused->n_outputs = outputs.count;
}

/* Constants that the parts use become parts themselves. */
static void copy_constants(struct pass *pass, struct node *fused) {
  struct node_list body = {0};
  for (int i = 0; i < fused->body.count; i++) {
    struct node *part = fused->body.items[i];
    for (int k = 0; k < part->n_inputs; k++) {
      int producer = pass->position[part->inputs[k]->id];
      if (producer < 0 || !is_constant(pass->nodes[producer])) continue;
      const struct node *original = pass->nodes[producer];
      struct node *copy = node_new(pass->graph, original->kind, NULL, 0, original->where);
      memcpy(copy->attributes, original->attributes, sizeof copy->attributes);
      copy->n_attributes = original->n_attributes;
      copy->region = pass->region;
      struct value *value = node_output(pass->graph, copy, original->outputs[0]->shape, original->outputs[0]->dtype);
      value->name = original->outputs[0]->name;
      part->inputs[k] = value;
      ARENA_PUSH(pass->graph->arena, body, copy);
    }
    ARENA_PUSH(pass->graph->arena, body, part);
  }
  fused->body = body;
}

static struct node *fused_node(struct pass *pass, int group) {
  struct node *fused = NULL;
  for (int m = pass->first[group]; m >= 0; m = pass->next[m]) {
    if (fused == NULL) fused = node_new(pass->graph, &op_fused, NULL, 0, pass->nodes[m]->where);
    ARENA_PUSH(pass->graph->arena, fused->body, pass->nodes[m]);
  }
  fused->region = pass->region;
  copy_constants(pass, fused);
  find_inputs(pass->graph->arena, fused);
  find_outputs(pass->graph->arena, fused, pass->uses, pass->n_values);
  return fused;
}

struct node *fuse_alone(struct graph *graph, struct node *part) {
  struct node *fused = node_new(graph, &op_fused, NULL, 0, part->where);
  ARENA_PUSH(graph->arena, fused->body, part);
  fused->region = part->region;
  find_inputs(graph->arena, fused);
  find_outputs(graph->arena, fused, NULL, 0);
  return fused;
}

/* Whether all that the group needs is in `done` already. */
static bool is_ready(const struct pass *pass, int group, const bool *done) {
  for (int m = pass->first[group]; m >= 0; m = pass->next[m]) {
    const struct node *node = pass->nodes[m];
    for (int i = 0; i < node->n_inputs; i++) {
      int producer = pass->position[node->inputs[i]->id];
      if (producer >= 0 && pass->group[producer] != group && !done[producer]) return false;
    }
  }
  return true;
}

/* The groups in an order that can run, close to the old one: a group is at the position of its last member. */
static void write_back(struct pass *pass, const int *order, int n_groups) {
  struct arena *arena = pass->graph->arena;
  bool *done = arena_alloc(arena, ((size_t)pass->n + 1) * sizeof(bool));
  bool *written = arena_alloc(arena, ((size_t)n_groups + 1) * sizeof(bool));
  struct node_list nodes = {0};
  for (int left = n_groups, oldest = 0; left > 0; left--) {
    while (written[oldest]) oldest++;
    int next = oldest;
    while (written[next] || !is_ready(pass, order[next], done)) next++;
    written[next] = true;
    int last = order[next];
    for (int m = pass->first[last]; m >= 0; m = pass->next[m]) done[m] = true;
    struct node *node = is_fusible(pass->nodes[last]) ? fused_node(pass, last) : pass->nodes[last];
    ARENA_PUSH(arena, nodes, node);
  }
  pass->region->nodes = nodes;
}

static void fuse_region(struct graph *graph, struct region *region, const int *uses, int n_values) {
  struct arena *arena = graph->arena;
  struct pass pass = {.graph = graph, .region = region, .uses = uses, .n_values = n_values, .n = region->nodes.count};
  if (pass.n == 0) return;
  pass.nodes = region->nodes.items;
  pass.group = arena_alloc(arena, (size_t)pass.n * sizeof(int));
  pass.first = arena_alloc(arena, (size_t)pass.n * sizeof(int));
  pass.next = arena_alloc(arena, (size_t)pass.n * sizeof(int));
  pass.spans = arena_alloc(arena, (size_t)pass.n * sizeof(int));
  pass.seen = arena_alloc(arena, (size_t)pass.n * sizeof(int));
  pass.position = arena_alloc(arena, (size_t)n_values * sizeof(int));
  for (int i = 0; i < n_values; i++) pass.position[i] = -1;
  for (int i = 0; i < pass.n; i++) {
    pass.group[i] = pass.first[i] = i;
    pass.next[i] = -1;
    for (int k = 0; k < pass.nodes[i]->n_outputs; k++) pass.position[pass.nodes[i]->outputs[k]->id] = i;
  }
  merge_groups(&pass);
  int *order = arena_alloc(arena, (size_t)pass.n * sizeof(int));
  int n_groups = 0;
  for (int i = 0; i < pass.n; i++) { /* a merged group is numbered by its last member */
    if (pass.group[i] != i) continue;
    order[n_groups++] = i;
  }
  write_back(&pass, order, n_groups);
}

/* Constants whose uses were all written into fused nodes are left without use. */
static void drop_unused_constants(struct graph *graph) {
  const int *uses = count_uses(graph->arena, graph);
  for (int r = 0; r < graph->n_regions; r++) {
    struct region *region = graph->regions[r];
    int kept = 0;
    for (int i = 0; i < region->nodes.count; i++) {
      struct node *node = region->nodes.items[i];
      bool unused = node->body.count == 1 && is_constant(node->body.items[0]) &&
                    (node->n_outputs == 0 || uses[node->outputs[0]->id] == 0);
      if (!unused) region->nodes.items[kept++] = node;
    }
    region->nodes.count = kept;
  }
}

void fuse(struct graph *graph) {
  int n_values = graph->next_value;
  const int *uses = count_uses(graph->arena, graph);
  for (int r = 0; r < graph->n_regions; r++) fuse_region(graph, graph->regions[r], uses, n_values);
  drop_unused_constants(graph);
}
