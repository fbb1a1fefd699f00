#include "gen/plan/graph/sums.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/loop_carried.h"
#include "gen/plan/graph/rewrites.h"
#include "gen/plan/graph/uses.h"

/* A node of another kind with `node`'s attributes, instead of `last`, from where `node` and `other` are gone. */
static struct node *fuse(struct rewriter *rewriter, const struct op_kind *kind, struct node *node, struct node *other,
                         struct node *last, struct value *const *inputs, int n_inputs) {
  struct node *fused = node_new(rewriter->graph, kind, inputs, n_inputs, node->where);
  memcpy(fused->attributes, node->attributes, sizeof fused->attributes);
  fused->n_attributes = node->n_attributes;
  fused->autocast = node->autocast;
  fused->again = node->again;
  region_insert(rewriter->graph, last->region, region_position(last), fused);
  region_remove(last->region, node);
  region_remove(last->region, other);
  return fused;
}

static void take_outputs(struct rewriter *rewriter, struct node *fused, const struct node *node, int from) {
  for (int i = from; i < node->n_outputs; i++) node_take_output(rewriter->graph, fused, node->outputs[i]);
}

/* Whether a loop over elements makes the value, as a part of which it need not be written. */
static bool comes_from_loop(const struct rewriter *rewriter, const struct region *region, const struct value *value) {
  return value->kind == VALUE_RESULT && value->region == region && value->producer->kind->class == OP_ELEMENTWISE &&
         rewriter->uses[value->id] == 1;
}

bool fuse_sum_before(struct rewriter *rewriter, struct node *node, const struct rewrite *rule) {
  struct value *x = node->inputs[0];
  if (x->kind != VALUE_RESULT || x->region != node->region || x->id >= rewriter->n_values) return false;
  struct node *sum = x->producer;
  if (!op_is_sum(sum) || sum->again != node->again || is_used_before(node->region, x, region_position(node)))
    return false;
  struct value *inputs[8] = {sum->inputs[0], sum->inputs[1]};
  for (int i = 0; i < 2; i++)
    if (inputs[i]->id >= rewriter->n_values || comes_from_loop(rewriter, node->region, inputs[i])) return false;
  for (int i = 1; i < node->n_inputs; i++) inputs[i + 1] = node->inputs[i];
  struct node *fused = fuse(rewriter, rewrite_kind(rule), node, sum, node, inputs, node->n_inputs + 1);
  take_outputs(rewriter, fused, node, 0);
  node_take_output(rewriter->graph, fused, x);
  return true;
}

/* Whether a node adds a value and another of its shape, or, if `repeated`, of its last dimensions alone. */
static bool is_sum_with(const struct value *value, const struct node *node, bool repeated) {
  if (op_is_sum(node)) return true;
  if (!node->kind->fusion.adds || !repeated) return false;
  const struct shape whole = value->shape, other = node->inputs[node->inputs[0] == value]->shape;
  if (!shape_equal(whole, node->outputs[0]->shape) || other.rank < 1 || other.rank > whole.rank) return false;
  for (int i = 1; i <= other.rank; i++)
    if (other.dim[other.rank - i] != whole.dim[whole.rank - i]) return false;
  return true;
}

/* The addition that alone uses a value, after its producer and of the same types throughout. */
static struct node *only_sum(const struct rewriter *rewriter, const struct value *value, bool repeated) {
  const struct region *region = value->region;
  if (value->id >= rewriter->n_values || rewriter->uses[value->id] != 1) return NULL;
  for (int i = region_position(value->producer) + 1; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (node->n_inputs != 2 || (node->inputs[0] != value && node->inputs[1] != value)) continue;
    if (!is_sum_with(value, node, repeated)) continue;
    bool alike = node->inputs[0]->dtype == node->inputs[1]->dtype && node->outputs[0]->dtype == value->dtype;
    return alike && node->again == value->producer->again ? node : NULL;
  }
  return NULL;
}

static bool fuse_after(struct rewriter *rewriter, struct node *node, const struct rewrite *rule, bool repeated) {
  struct value *dx = node->outputs[0];
  struct node *sum = only_sum(rewriter, dx, repeated);
  if (sum == NULL) return false;
  struct value *other = sum->inputs[sum->inputs[0] == dx];
  for (int i = 1; i < node->n_outputs; i++)
    if (is_used_before(node->region, node->outputs[i], region_position(sum))) return false;
  if (other == dx || comes_from_loop(rewriter, node->region, other)) return false;
  struct value *inputs[8];
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = node->inputs[i];
  inputs[node->n_inputs] = other;
  struct node *fused = fuse(rewriter, rewrite_kind(rule), node, sum, sum, inputs, node->n_inputs + 1);
  node_take_output(rewriter->graph, fused, sum->outputs[0]);
  take_outputs(rewriter, fused, node, 1);
  return true;
}

bool fuse_sum_after(struct rewriter *rewriter, struct node *node, const struct rewrite *rule) {
  return fuse_after(rewriter, node, rule, false);
}

bool fuse_repeated_sum_after(struct rewriter *rewriter, struct node *node, const struct rewrite *rule) {
  return fuse_after(rewriter, node, rule, true);
}

/* A conversion to 16 bits of output 0 that is written to memory in any case. */
static struct node *written_copy(const struct node *node) {
  const struct region *region = node->region;
  for (int i = region_position(node) + 1; i < region->nodes.count; i++) {
    struct node *cast = region->nodes.items[i];
    if (!cast->kind->types.converts || cast->inputs[0] != node->outputs[0] || cast->again != node->again) continue;
    if (dtype_is_bits16(cast->outputs[0]->dtype) && !goes_to_loops(region, cast->outputs[0])) return cast;
  }
  return NULL;
}

bool fuse_copy_after(struct rewriter *rewriter, struct node *node, const struct rewrite *rule) {
  struct node *cast = written_copy(node);
  if (cast == NULL || dtype_is_bits16(node->outputs[0]->dtype)) return false;
  struct node *fused = fuse(rewriter, rewrite_kind(rule), node, cast, node, node->inputs, node->n_inputs);
  node_take_output(rewriter->graph, fused, node->outputs[0]);
  node_take_output(rewriter->graph, fused, cast->outputs[0]);
  take_outputs(rewriter, fused, node, 1);
  return true;
}

void fuse_sums(struct builder *builder) {
  struct graph *graph = builder_graph(builder);
  rewrite_graph(graph, REWRITE_SUMS, 0);
  bool copies = carry_copies(graph), residuals = carry_residuals(builder);
  if (copies || residuals) rewrite_graph(graph, REWRITE_SUMS, 0);
}
