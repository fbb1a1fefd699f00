#include "gen/plan/memory/completion.h"

#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/storage.h"
#include "gen/program/weights.h"

/* ---- What a point does ---- */

static int64_t weight_at(const struct completion *completion, const struct parameter *parameter,
                         const char *const *prefixes) {
  struct program *program = completion->program;
  const char *path = weight_path(program->arena, prefixes[parameter->scope], parameter->path);
  return weight_named(program->weights, path) - program->weights->items;
}

static void note_gradient(struct completion *completion, const struct parameter *parameter,
                          const char *const *prefixes) {
  const int64_t weight = weight_at(completion, parameter, prefixes);
  if (completion->first[weight] == 0) completion->first[weight] = completion->points.count;
  completion->ready[weight] = completion->points.count;
}

static void note_weight(struct completion *completion, const struct parameter *parameter, const char *const *prefixes) {
  completion->freed[weight_at(completion, parameter, prefixes)] = completion->points.count;
}

/* Everything that a region adds to gradients, and all parameters that it may read, count for the newest point. */
static void note_region(struct completion *completion, const struct region *region, const char *const *prefixes) {
  const struct region *forward = region->forward != NULL ? region->forward : region;
  for (int i = 0; i < region->gradients.count; i++)
    note_gradient(completion, &forward->parameters.items[region->gradients.items[i].parameter], prefixes);
  for (int i = 0; i < forward->parameters.count; i++) note_weight(completion, &forward->parameters.items[i], prefixes);
  for (int i = 0; i < region->nodes.count; i++) {
    const struct call *call = region->nodes.items[i]->call;
    for (int k = 0; call != NULL && k < call->count; k++)
      note_region(completion, call->callee, weight_scopes(completion->program->arena, call, k, prefixes));
  }
}

/* Whether the program has one call of a function, which runs once. */
static bool runs_once(const struct program *program, const struct function *function) {
  int calls = 0;
  for (int f = 0; f < program->functions.count; f++)
    for (int s = 0; s < program->functions.items[f]->n_steps; s++) {
      const struct step *step = &program->functions.items[f]->steps[s];
      if (step->callee == function) calls += step->node->call->count;
    }
  return calls == 1;
}

static void add_point(struct completion *completion, struct step *step, int iteration) {
  struct completion_point point = {step, iteration};
  ARENA_PUSH(completion->program->arena, completion->points, point);
}

static void note_function(struct completion *completion, const struct function *function, const char *const *prefixes);

static void note_call(struct completion *completion, struct step *step, const char *const *prefixes) {
  const struct call *call = step->node->call;
  bool back = call->forward != NULL;
  for (int k = 0; k < call->count; k++) {
    int iteration = back ? call->count - 1 - k : k;
    const char *const *inner = weight_scopes(completion->program->arena, call, iteration, prefixes);
    if (runs_once(completion->program, step->callee)) {
      note_function(completion, step->callee, inner);
      continue;
    }
    add_point(completion, step, iteration);
    note_region(completion, call->callee, inner);
  }
}

/* A gradient that is a value of the backward as well, as of a bias of one row, is complete when nothing reads it. */
static void note_views(struct completion *completion, const struct function *function, const struct view *views,
                       int count, const char *const *prefixes) {
  const struct region *region = function->region;
  const struct region *forward = region->forward != NULL ? region->forward : region;
  for (int i = 0; i < count; i++) {
    struct storage *storage = views[i].storage != NULL ? storage_root(views[i].storage) : NULL;
    if (storage == NULL) continue;
    if (storage->kind == STORAGE_GRADIENT)
      note_gradient(completion, &forward->parameters.items[storage->index], prefixes);
    if (storage->kind == STORAGE_WEIGHT) note_weight(completion, &forward->parameters.items[storage->index], prefixes);
  }
}

static void note_function(struct completion *completion, const struct function *function, const char *const *prefixes) {
  for (int s = 0; s < function->n_steps; s++) {
    struct step *step = &function->steps[s];
    if (step->callee != NULL)
      note_call(completion, step, prefixes);
    else
      add_point(completion, step, 0);
    note_views(completion, function, step->outputs, step->node->n_outputs, prefixes);
    note_views(completion, function, step->inputs, step->node->n_inputs, prefixes);
  }
}

/* ---- All ---- */

void find_completion(struct program *program, struct completion *completion) {
  static const char *const root[] = {""};
  const size_t size = ((size_t)program->weights->count + 1) * sizeof(int);
  *completion = (struct completion){.program = program};
  completion->first = arena_alloc(program->arena, size);
  completion->ready = arena_alloc(program->arena, size);
  completion->freed = arena_alloc(program->arena, size);
  note_function(completion, program->entry.backward, root);
}

void mark_completion(const struct completion *completion, const int *ready, int count) {
  int complete = 0;
  for (int i = 0; i < completion->points.count; i++) {
    const struct completion_point *point = &completion->points.items[i];
    const struct call *call = point->step->node->call;
    int before = complete, iterations = call != NULL ? call->count : 1;
    while (complete < count && ready[complete] <= i + 1) complete++;
    if (complete == before && iterations == 1) continue;
    if (point->step->complete == NULL) {
      point->step->complete = arena_alloc(completion->program->arena, ((size_t)iterations + 1) * sizeof(int));
      point->step->complete[iterations] = before;
    }
    point->step->complete[point->iteration] = complete;
  }
}
