#include "gen/plan/graph/normalize.h"

#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"

/* The operation that prevents a mean, the first one found. */
struct search {
  struct builder *builder;
  const struct node *cause;
};

static struct mean mean_of(struct search *search, const struct value *value);

static struct mean none(struct search *search, const struct node *node) {
  if (search->cause == NULL) search->cause = node;
  return (struct mean){.form = MEAN_NONE};
}

/* Every call of the region gets the new result as a new output. */
static void hand_on(struct graph *graph, struct region *callee, struct value *result) {
  ARENA_PUSH(graph->arena, callee->results, result);
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      struct node *node = graph->regions[r]->nodes.items[i];
      if (node->call != NULL && node->call->callee == callee) node_output(graph, node, result->shape, result->dtype);
    }
}

/* What the region's value is outside of a call: the caller's own where it is handed in. */
static const struct value *outside(const struct node *node, const struct value *value, const struct value *otherwise) {
  const struct region *callee = node->call->callee;
  for (int i = 0; i < callee->inputs.count; i++)
    if (callee->inputs.items[i] == value) return node->inputs[i];
  return otherwise;
}

/* A result of a called region. A count that it is weighted by comes out of the call with it. */
static struct mean mean_of_call(struct search *search, struct node *node, int index) {
  struct region *callee = node->call->callee;
  if (node->call->count > 1) return none(search, node);
  struct mean mean = mean_of(search, callee->results.items[index]);
  if (mean.form == MEAN_COUNTED) {
    hand_on(builder_graph(search->builder), callee, mean.count);
    mean.count = node->outputs[node->n_outputs - 1];
    mean.of = outside(node, mean.of, mean.count);
    name_values(builder_arena(search->builder), callee);
  } else if (mean.form != MEAN_NONE) {
    mean.count = node->outputs[index];
  }
  return mean;
}

static struct mean mean_of_kind(struct search *search, struct node *node) {
  struct mean inputs[10] = {0};
  const struct node *before = search->cause;
  bool preserved = node->kind->class == OP_VIEW || node->kind->types.converts;
  if (node->kind->evaluation.mean == NULL && !preserved) return none(search, node);
  for (int i = 0; i < node->n_inputs && i < 10; i++)
    if (shape_count(node->inputs[i]->shape) == 1) inputs[i] = mean_of(search, node->inputs[i]);
  if (node->kind->evaluation.mean == NULL) return inputs[0];
  struct mean mean = node->kind->evaluation.mean(node, inputs);
  if (mean.form == MEAN_NONE) return none(search, node);
  search->cause = before; /* an input that is none did no harm */
  return mean;
}

static struct mean mean_of(struct search *search, const struct value *value) {
  struct node *node = value->producer;
  if (node == NULL) return (struct mean){.form = MEAN_NONE};
  if (node->call != NULL) return mean_of_call(search, node, value->index);
  return value->index == 0 ? mean_of_kind(search, node) : none(search, node);
}

struct mean loss_mean(struct builder *builder, const struct region *entry, const struct node **cause) {
  struct search search = {.builder = builder};
  struct mean mean = mean_of(&search, entry->results.items[0]);
  *cause = search.cause;
  return mean;
}

bool target_occurs(const struct job *job, int64_t target) {
  bool marked = job->accumulation.normalize == NORMALIZE_TOKENS; /* files may say which tokens are trained on */
  return target >= 0 || marked || job->data.masking.on || job->data.packing != PACKING_NONE;
}

struct value *give_count(struct builder *builder, struct region *entry, struct mean mean) {
  struct value *count = mean.count;
  builder_enter(builder, entry);
  if (mean.inverse) count = op_div(builder, op_constant(builder, 1, (struct shape){0}), count);
  count = op_reshape(builder, count, (struct shape){0});
  builder_leave(builder);
  count->name = "counted";
  ARENA_PUSH(builder_arena(builder), entry->results, count);
  name_values(builder_arena(builder), entry);
  return count;
}
