#include "gen/plan/memory/gradients.h"

#include <string.h>

#include "gen/ir/region.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/plan/memory/weights.h"
#include "gen/program/optimizers.h"
#include "gen/program/sharding.h"
#include "gen/program/streams.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

/* ---- Gradients ---- */

struct meeting {
  struct parameter_gradient *gradient;
  int visit;
};

/* What is counted on the way, by weight. */
struct counts {
  int *contributions;
  int *readers;                      /* calls that have it */
  struct parameter_gradient **first; /* the first contribution */
  struct meeting *newest;            /* the newest contribution, and the visit that it came with */
  int visits;
  bool changed;
};

static struct weight *weight_of(const struct weight_visitor *visitor, const struct parameter *p,
                                const char *const *prefixes) {
  return weight_named(visitor->program->weights, weight_path(visitor->program->arena, prefixes[p->scope], p->path));
}

/* The weight to whose gradient a visit contributes this; NULL: it comes with another visit of the same call. */
static struct weight *contributed(const struct weight_visitor *visitor, const struct region *region,
                                  const struct parameter_gradient *gradient, const struct node *after,
                                  const char *const *prefixes) {
  bool local = gradient->value->kind == VALUE_RESULT && gradient->value->region == region;
  if (after != NULL ? !node_makes(after, gradient->value) : local) return NULL;
  return weight_of(visitor, &region->forward->parameters.items[gradient->parameter], prefixes);
}

/* Marks two gradients of one visit in a call that has one weight for both of their parameters, as f(s, s) does. */
static void mark_meeting(struct counts *counts, struct meeting *newest, struct parameter_gradient *gradient) {
  if (newest->visit == counts->visits) newest->gradient->meets = gradient->meets = true;
  *newest = (struct meeting){.gradient = gradient, .visit = counts->visits};
}

static void visit_gradients(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                            const char *const *prefixes) {
  struct counts *counts = visitor->context;
  counts->visits++;
  for (int i = 0; i < region->gradients.count; i++) {
    struct parameter_gradient *gradient = &region->gradients.items[i];
    struct weight *weight = contributed(visitor, region, gradient, after, prefixes);
    if (weight == NULL) continue;
    int at = (int)(weight - visitor->program->weights->items);
    mark_meeting(counts, &counts->newest[at], gradient);
    if (counts->first[at] == NULL) counts->first[at] = gradient;
    if (counts->contributions[at]++ > 0) gradient->accumulate = counts->first[at]->shared = true;
    if (counts->first[at] != gradient) weight->tied = true;
  }
}

/* ---- The order of contributions ---- */

/* Moves the node that makes a view to right after what it is a view of, and that after what it is a view of. */
static void follow(struct region *region, const struct value *view) {
  if (!value_is_view(view) || view->region != region) return;
  const struct value *viewed = view->producer->inputs[0];
  follow(region, viewed);
  struct node **nodes = region->nodes.items;
  int to = viewed->kind == VALUE_RESULT && viewed->region == region ? region_position(viewed->producer) + 1 : 0;
  int from = region_position(view->producer);
  memmove(nodes + to + 1, nodes + to, (size_t)(from - to) * sizeof *nodes);
  nodes[to] = view->producer;
}

/* A kernel may write a view of its result as a gradient: it contributes when it runs, so its view remains. */
static void order_contributions(struct graph *graph) {
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->gradients.count; i++)
      follow(graph->regions[r], graph->regions[r]->gradients.items[i].value);
}

/* A gradient that adds for one parameter and is the first for another needs zeros there. */
static void visit_zeros(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                        const char *const *prefixes) {
  struct counts *counts = visitor->context;
  for (int i = 0; i < region->gradients.count; i++) {
    const struct parameter_gradient *gradient = &region->gradients.items[i];
    struct weight *weight = contributed(visitor, region, gradient, after, prefixes);
    if (weight == NULL) continue;
    if (counts->contributions[weight - visitor->program->weights->items]++ == 0 && gradient->accumulate)
      weight->zero = true;
  }
}

static void visit_readers(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                          const char *const *prefixes) {
  struct counts *counts = visitor->context;
  for (int i = 0; i < region->parameters.count && after == NULL; i++)
    counts->readers[weight_of(visitor, &region->parameters.items[i], prefixes) - visitor->program->weights->items]++;
}

/* One backward function serves all calls of its function, so what one of them cannot do, none does. */
static void visit_in_backward(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                              const char *const *prefixes) {
  struct counts *counts = visitor->context;
  for (int i = 0; i < region->parameters.count && after == NULL && region->forward == NULL; i++) {
    struct parameter *p = &region->parameters.items[i];
    struct weight *weight = weight_of(visitor, p, prefixes);
    if (p->in_backward == weight->in_backward) continue;
    p->in_backward = weight->in_backward = false;
    counts->changed = true;
  }
}

/* A weight can change within the backward where that has a single gradient for it, and one call alone reads it. */
static void choose_in_backward(struct program *program, struct weight_visitor *visitor) {
  const struct graph *graph = program->graph;
  struct counts *counts = visitor->context;
  if (program->kind != PROGRAM_TRAIN || !job_optimizer(program->job)->in_backward) return;
  counts->readers = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof(int));
  visitor->visit = visit_readers;
  weight_visit_from(visitor, graph->entry);
  for (int i = 0; i < program->weights->count; i++) {
    struct weight *weight = &program->weights->items[i];
    weight->in_backward =
        weight->parameter->value->differentiable && counts->contributions[i] == 1 && counts->readers[i] == 1;
  }
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->parameters.count; i++)
      graph->regions[r]->parameters.items[i].in_backward = graph->regions[r]->forward == NULL;
  visitor->visit = visit_in_backward;
  do {
    counts->changed = false;
    weight_visit_entries(visitor);
  } while (counts->changed);
}

/* Whether its gradient is stored. */
static bool has_gradient(const struct weight *weight) {
  return weight->parameter->value->differentiable && !weight->in_backward;
}

void plan_gradients(struct program *program) {
  const struct graph *graph = program->graph;
  const struct region *backward = graph_backward_of(graph, graph->entry);
  if (backward == NULL) return;
  order_contributions(program->graph);
  struct counts counts = {0};
  struct weight_visitor visitor = {.program = program, .visit = visit_gradients, .context = &counts};
  size_t bytes = ((size_t)program->weights->count + 1) * sizeof(int);
  counts.contributions = arena_alloc(program->arena, bytes);
  counts.first = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *counts.first);
  counts.newest = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *counts.newest);
  weight_visit_from(&visitor, backward);
  for (int r = 0; r < graph->n_regions && gradients_add_up(program); r++)
    for (int i = 0; i < graph->regions[r]->gradients.count; i++)
      graph->regions[r]->gradients.items[i].accumulate = true;
  choose_in_backward(program, &visitor);
  memset(counts.contributions, 0, bytes);
  visitor.visit = visit_zeros;
  weight_visit_from(&visitor, backward);
  for (int i = 0; i < program->weights->count; i++) /* what no gradient reaches, the update finds at zero */
    if (counts.contributions[i] == 0)
      program->weights->items[i].zero = program->weights->items[i].unreached =
          has_gradient(&program->weights->items[i]);
}

/* ---- The tree of what is stored ---- */

/* Whether elements of one array, which a loop goes through by an index, are elements of one among the gradients too,
 * where they have gradients. */
static bool is_array_of_gradients(const struct program *program, const struct weight_array *array) {
  const struct weight_node *before = NULL;
  for (int i = 0; i < array->count; i++) {
    const struct weight_node *trained = weight_node_at(program->gradients->root, array->elements[i]->path);
    if (trained == NULL) continue;
    if (before != NULL && (trained->array == NULL || trained->array != before->array)) return false;
    before = trained;
  }
  return true;
}

static bool same_arrays(const struct program *program, const struct weight_node *node, struct diagnostics *diags) {
  bool first = node->array != NULL && node->array->elements[0] == node;
  bool good = !first || is_array_of_gradients(program, node->array);
  if (!good) {
    bool freezes = program->figures.n_frozen > 0;
    const struct job *job = program->job;
    struct location where = job->model.n_freeze > 0 ? job->model.freeze[0].where
                                                    : job_where(job, freezes ? "model.source" : "optimizer.name");
    diag_error(diags, where, "the parameters that %s below '%s' differ by layer",
               freezes ? "are frozen" : "are updated in the backward", node->parent->path);
    diag_help(diags, freezes ? "freeze whole layers, and the same parts of all others"
                             : "let all layers share the same parameters with others, or take optimizer.name: sgd");
  }
  for (int i = 0; i < node->n_children && good; i++) good = same_arrays(program, node->children[i], diags);
  return good;
}

/* An optimizer that evaluates an average of the weights leaves no running statistics, which are of other weights, and
 * has no average of what it does not train. */
static bool check_averaged(const struct program *program, struct diagnostics *diags) {
  if (program->kind != PROGRAM_TRAIN || !job_optimizer(program->job)->averages) return true;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    if (weight->parameter->value->differentiable) continue;
    diag_error(diags, job_where(program->job, "optimizer.name"),
               "'%s' evaluates an average of the weights, and '%s' is %s", job_optimizer(program->job)->name,
               weight->path, weight->parameter->buffer ? "of the weights that it trains with" : "not trained");
    diag_help(diags, "use optimizer.name: adamw, or a model without %s",
              weight->parameter->buffer ? "running statistics" : "buffers");
    return false;
  }
  return true;
}

/* The tree of what is trained, along with a program's own. */
bool plan_trained(struct program *program, struct diagnostics *diags) {
  /* They have a layout of their own. */
  bool some = weights_are_split(program) || gradients_are_split(program) || layers_are_on_disk(program);
  if (!check_averaged(program, diags)) return false;
  program->figures.n_frozen = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    bool frozen = !weight->parameter->value->differentiable && !weight->parameter->buffer;
    if (frozen && program->kind == PROGRAM_TRAIN) program->figures.n_frozen += shape_count(weight->parameter->shape);
    some |= !has_gradient(weight);
  }
  if (some && program->kind == PROGRAM_TRAIN) {
    program->gradients = plan_weights(program, true, diags);
    if (program->gradients == NULL) return false;
    if (!same_arrays(program, program->weights->root, diags)) return false;
  }
  for (int i = 0; i < program->weights->count; i++) {
    struct weight *weight = &program->weights->items[i];
    bool stored = program->gradients == program->weights || has_gradient(weight);
    weight->gradient = stored ? weight_offset(program->gradients, weight->place) : -1;
  }
  return true;
}
