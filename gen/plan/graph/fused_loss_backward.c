#include "gen/plan/graph/fused_loss_backward.h"

#include <string.h>

#include "gen/ir/builder.h"
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/rewrites.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/optimizers.h"

struct pass {
  struct graph *graph;
  struct builder *builder;
  struct region *forward, *backward; /* the entry's */
  bool *late;                        /* by node id: of the forward region, what comes of a loss that moves */
};

enum { LOSS = 0, INVERSE_COUNT = 2 };

/* The kind that fuses a node with its gradient; NULL: there is none. */
static const struct op_kind *fused_kind(const struct node *node) {
  return rewrite_result(REWRITE_LOSS_BACKWARD, node->kind);
}

/* The only node of the backward region that uses the other outputs of `node`; NULL: there is none. */
static struct node *gradient_of(const struct pass *pass, const struct node *node) {
  struct node *found = NULL;
  for (int i = 0; i < pass->backward->nodes.count; i++) {
    struct node *user = pass->backward->nodes.items[i];
    for (int k = 0; k < user->n_inputs; k++) {
      if (!node_makes(node, user->inputs[k]) || user->inputs[k]->index == INVERSE_COUNT) continue;
      if ((found != NULL && found != user) || user->inputs[k]->index == LOSS) return NULL;
      found = user;
    }
  }
  for (int o = 0; o < node->n_outputs; o++)
    if (o != LOSS && o != INVERSE_COUNT && value_is_used(pass->forward, node->outputs[o], NULL)) return NULL;
  return found;
}

/* Marks what depends on the late ones; false where it cannot move: a function's call, or what reads an input. */
static bool mark_late(struct pass *pass) {
  for (int i = 0; i < pass->forward->nodes.count; i++) {
    const struct node *node = pass->forward->nodes.items[i];
    if (pass->late[node->id]) continue;
    bool reads = false, movable = node->call == NULL && !op_assigns(node->kind) && fused_kind(node) == NULL;
    for (int k = 0; k < node->n_inputs; k++) {
      const struct value *input = node->inputs[k];
      pass->late[node->id] |= input->kind == VALUE_RESULT && pass->late[input->producer->id] &&
                              (fused_kind(input->producer) == NULL || input->index != INVERSE_COUNT);
      reads |= viewed_value(input)->kind == VALUE_INPUT;
    }
    if (pass->late[node->id] && (reads || !movable)) return false;
  }
  return true;
}

/* Whether the backward, but for the gradients that move, needs nothing of what is late, and the forward gives nothing
 * of it but its first result. */
static bool is_free(const struct pass *pass) {
  for (int i = 0; i < pass->backward->nodes.count; i++) {
    const struct node *user = pass->backward->nodes.items[i];
    for (int k = 0; k < user->n_inputs; k++) {
      const struct value *input = user->inputs[k];
      bool late = input->kind == VALUE_RESULT && input->region == pass->forward && pass->late[input->producer->id];
      if (late && fused_kind(input->producer) == NULL) return false;
    }
  }
  for (int i = 0; i < pass->forward->results.count; i++) {
    const struct value *result = pass->forward->results.items[i];
    bool late = result->kind == VALUE_RESULT && pass->late[result->producer->id];
    bool inverse_count = late && fused_kind(result->producer) != NULL && result->index == INVERSE_COUNT;
    if (late != (i == 0) && !inverse_count) return false;
  }
  return true;
}

/* Replaces the node with one that computes its inverse count alone. */
static void split_inverse_count(struct pass *pass, struct node *node) {
  builder_enter(pass->builder, pass->forward);
  builder_at(pass->builder, node->where);
  struct node *inverse_count = node->kind->fusion.inverse_count(pass->builder, node);
  builder_leave(pass->builder);
  region_remove(pass->forward, inverse_count);
  region_insert(pass->graph, pass->forward, region_position(node), inverse_count);
  inverse_count->n_outputs = 0;
  node_take_output(pass->graph, inverse_count, node->outputs[INVERSE_COUNT]);
}

static void give(struct pass *pass, struct node *fused, struct value *value) {
  value->region = pass->backward;
  node_take_output(pass->graph, fused, value);
}

static struct node *fuse(struct pass *pass, struct node *node, struct node *gradient) {
  struct value *inputs[10];
  int n = 0;
  split_inverse_count(pass, node);
  for (int i = 0; i < gradient->n_inputs; i++)
    if (gradient->inputs[i]->producer != node) inputs[n++] = gradient->inputs[i];
  struct node *fused = node_new(pass->graph, fused_kind(node), inputs, n, node->where);
  memcpy(fused->attributes, node->attributes, sizeof fused->attributes);
  fused->n_attributes = node->n_attributes;
  region_insert(pass->graph, pass->backward, region_position(gradient), fused);
  region_remove(pass->forward, node);
  region_remove(pass->backward, gradient);
  give(pass, fused, node->outputs[LOSS]);
  for (int i = 0; i < gradient->n_outputs; i++) {
    if (gradient->kind->memory.workspace >> i & 1)
      gradient->outputs[i]->name = NULL; /* it comes before the loss's name */
    give(pass, fused, gradient->outputs[i]);
  }
  return fused;
}

/* Moves what depends on the losses, in its order, to position `at` of the backward and after it. */
static void move_late(struct pass *pass, int at) {
  for (int i = 0; i < pass->forward->nodes.count; i++) {
    struct node *node = pass->forward->nodes.items[i];
    if (!pass->late[node->id]) continue;
    region_remove(pass->forward, node);
    region_insert(pass->graph, pass->backward, at++, node);
    for (int o = 0; o < node->n_outputs; o++) node->outputs[o]->region = pass->backward;
    i--;
  }
  struct value_list *results = &pass->forward->results;
  ARENA_PUSH(pass->graph->arena, pass->backward->results, results->items[0]);
  for (int i = 1; i < results->count; i++) results->items[i - 1] = results->items[i];
  results->count--;
}

/* The nodes that can be fused with their gradients. */
static int find(struct pass *pass, struct node **nodes, struct node **gradients) {
  int n = 0;
  for (int i = 0; i < pass->forward->nodes.count; i++) {
    struct node *node = pass->forward->nodes.items[i];
    struct node *gradient = fused_kind(node) != NULL ? gradient_of(pass, node) : NULL;
    if (gradient == NULL) continue;
    pass->late[node->id] = true;
    nodes[n] = node;
    gradients[n++] = gradient;
  }
  return n;
}

void fuse_loss_backward(struct program *program, struct builder *builder) {
  struct graph *graph = program->graph;
  const struct region *backward = graph_backward_of(graph, graph->entry);
  if (backward == NULL || graph->entry->recompute || job_optimizer(program->job)->in_backward) return;
  struct pass pass = {
      .graph = graph, .builder = builder, .forward = graph->entry, .backward = graph->regions[backward->id]};
  pass.late = arena_alloc(graph->arena, ((size_t)graph->next_node + 1) * sizeof *pass.late);
  size_t most = (size_t)pass.forward->nodes.count + 1;
  struct node **nodes = arena_alloc(graph->arena, most * sizeof(struct node *));
  struct node **gradients = arena_alloc(graph->arena, most * sizeof(struct node *));
  int n = find(&pass, nodes, gradients), last = 0;
  if (n == 0 || !mark_late(&pass) || !is_free(&pass)) return;
  for (int i = 0; i < n; i++) fuse(&pass, nodes[i], gradients[i]);
  for (int i = 0; i < pass.backward->nodes.count; i++)
    for (int k = 0; k < n; k++)
      if (node_makes(pass.backward->nodes.items[i], nodes[k]->outputs[LOSS])) last = i + 1;
  move_late(&pass, last);
  program->entry.loss_in_backward = true;
  name_values(graph->arena, pass.forward);
  name_values(graph->arena, pass.backward);
}
