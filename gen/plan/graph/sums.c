#include "gen/plan/graph/sums.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/carry.h"
#include "gen/plan/graph/uses.h"

struct pass {
  struct graph *graph;
  const int *uses; /* by value id, of the n_values values that the graph had before this pass */
  int n_values;
};

/* A node of another kind with `node`'s attributes, in the place of `last`, from where `node` and `other` are gone. */
static struct node *join(struct pass *pass, const struct op_kind *kind, struct node *node, struct node *other,
                         struct node *last, struct value *const *inputs, int n_inputs) {
  struct node *joined = node_new(pass->graph, kind, inputs, n_inputs, node->where);
  memcpy(joined->attributes, node->attributes, sizeof joined->attributes);
  joined->n_attributes = node->n_attributes;
  joined->autocast = node->autocast;
  joined->again = node->again;
  region_insert(pass->graph, last->region, region_position(last), joined);
  region_remove(last->region, node);
  region_remove(last->region, other);
  return joined;
}

static void take_outputs(struct pass *pass, struct node *joined, const struct node *node, int from) {
  for (int i = from; i < node->n_outputs; i++) node_take_output(pass->graph, joined, node->outputs[i]);
}

/* Whether a loop over elements makes the value, as a part of which it need not be written. */
static bool comes_from_loop(const struct pass *pass, const struct region *region, const struct value *value) {
  return value->kind == VALUE_RESULT && value->region == region && value->producer->kind->class == OP_ELEMENTWISE &&
         pass->uses[value->id] == 1;
}

static bool take_before(struct pass *pass, struct node *node) {
  struct value *x = node->inputs[0];
  if (x->kind != VALUE_RESULT || x->region != node->region || x->id >= pass->n_values) return false;
  struct node *sum = x->producer;
  if (!op_is_sum(sum) || sum->again != node->again || is_used_before(node->region, x, region_position(node)))
    return false;
  struct value *inputs[8] = {sum->inputs[0], sum->inputs[1]};
  for (int i = 0; i < 2; i++)
    if (inputs[i]->id >= pass->n_values || comes_from_loop(pass, node->region, inputs[i])) return false;
  for (int i = 1; i < node->n_inputs; i++) inputs[i + 1] = node->inputs[i];
  struct node *joined = join(pass, node->kind->of_sum, node, sum, node, inputs, node->n_inputs + 1);
  take_outputs(pass, joined, node, 0);
  node_take_output(pass->graph, joined, x);
  return true;
}

/* The same, or of a value and what is repeated along its first dimensions. */
static bool is_sum_with(const struct value *value, const struct node *node) {
  if (op_is_sum(node)) return true;
  if (!node->kind->adds || !value->producer->kind->plus_repeated) return false;
  const struct shape whole = value->shape, other = node->inputs[node->inputs[0] == value]->shape;
  if (!shape_equal(whole, node->outputs[0]->shape) || other.rank < 1 || other.rank > whole.rank) return false;
  for (int i = 1; i <= other.rank; i++)
    if (other.dim[other.rank - i] != whole.dim[whole.rank - i]) return false;
  return true;
}

/* The addition that alone uses a value, behind its producer and of the same types throughout. */
static struct node *only_sum(const struct pass *pass, const struct value *value) {
  const struct region *region = value->region;
  if (value->id >= pass->n_values || pass->uses[value->id] != 1) return NULL;
  for (int i = region_position(value->producer) + 1; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (node->n_inputs != 2 || (node->inputs[0] != value && node->inputs[1] != value)) continue;
    if (!is_sum_with(value, node)) continue;
    bool alike = node->inputs[0]->dtype == node->inputs[1]->dtype && node->outputs[0]->dtype == value->dtype;
    return alike && node->again == value->producer->again ? node : NULL;
  }
  return NULL;
}

static bool take_behind(struct pass *pass, struct node *node) {
  struct value *dx = node->outputs[0];
  struct node *sum = only_sum(pass, dx);
  if (sum == NULL) return false;
  struct value *other = sum->inputs[sum->inputs[0] == dx];
  for (int i = 1; i < node->n_outputs; i++)
    if (is_used_before(node->region, node->outputs[i], region_position(sum))) return false;
  if (other == dx || comes_from_loop(pass, node->region, other)) return false;
  struct value *inputs[8];
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = node->inputs[i];
  inputs[node->n_inputs] = other;
  struct node *joined = join(pass, node->kind->plus, node, sum, sum, inputs, node->n_inputs + 1);
  node_take_output(pass->graph, joined, sum->outputs[0]);
  take_outputs(pass, joined, node, 1);
  return true;
}

/* A conversion to 16 bits of output 0 that is written to memory in any case. */
static struct node *written_copy(const struct node *node) {
  const struct region *region = node->region;
  for (int i = region_position(node) + 1; i < region->nodes.count; i++) {
    struct node *cast = region->nodes.items[i];
    if (!cast->kind->converts || cast->inputs[0] != node->outputs[0] || cast->again != node->again) continue;
    if (dtype_is_low(cast->outputs[0]->dtype) && !goes_to_loops(region, cast->outputs[0])) return cast;
  }
  return NULL;
}

static bool take_copy(struct pass *pass, struct node *node) {
  struct node *cast = written_copy(node);
  if (cast == NULL || dtype_is_low(node->outputs[0]->dtype)) return false;
  struct node *joined = join(pass, node->kind->with_low, node, cast, node, node->inputs, node->n_inputs);
  node_take_output(pass->graph, joined, node->outputs[0]);
  node_take_output(pass->graph, joined, cast->outputs[0]);
  take_outputs(pass, joined, node, 1);
  return true;
}

static bool take(struct pass *pass, struct node *node) {
  if (node->kind->of_sum != NULL) return take_before(pass, node);
  if (node->kind->plus != NULL) return take_behind(pass, node);
  return node->kind->with_low != NULL && take_copy(pass, node);
}

static void take_all(struct graph *graph) {
  struct pass pass = {.graph = graph, .n_values = graph->next_value};
  pass.uses = count_uses(graph->arena, graph);
  for (int r = 0; r < graph->n_regions; r++) {
    struct region *region = graph->regions[r];
    for (int i = 0; i < region->nodes.count; i++)
      if (take(&pass, region->nodes.items[i])) i = -1; /* two nodes went, one came */
  }
}

void take_sums(struct builder *builder) {
  struct graph *graph = builder_graph(builder);
  take_all(graph);
  bool copies = carry_copies(graph), sums = carry_sums(builder);
  if (copies || sums) take_all(graph);
}
