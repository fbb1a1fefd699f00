#include "gen/plan/graph/recompute.h"

#include <string.h>

#include "gen/base/text.h"
#include "gen/plan/graph/segments.h"
#include "gen/plan/graph/stages.h"

int count_layers(const struct graph *graph) {
  int layers = 1;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct call *call = graph->regions[r]->nodes.items[i]->call;
      if (call != NULL && call->count > layers) layers = call->count;
    }
  return layers;
}

/* ---- Layers ---- */

/* Whether the call is one of several of a function in its region. */
static bool has_counterpart(const struct node *node) {
  for (int i = 0; i < node->region->nodes.count; i++) {
    const struct node *other = node->region->nodes.items[i];
    if (other != node && other->call != NULL &&
        strcmp(other->call->callee->function, node->call->callee->function) == 0)
      return true;
  }
  return false;
}

/* Whether the region calls anything in a loop that stayed one, or (`written_out`) several times, itself or deeper. */
static bool repeats(const struct region *region, bool written_out) {
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    if (node->call == NULL) continue;
    if (node->call->count > 1 || (written_out && has_counterpart(node)) || repeats(node->call->callee, written_out))
      return true;
  }
  return false;
}

/* Layers are the outermost calls that are repeated, or that have nothing repeated inside. Loops that stayed loops come
 * before those that were written out as their iterations differ. */
static bool is_layer(const struct node *node) {
  const struct region *callee = node->call->callee;
  if (node->call->count > 1) return true;
  return !repeats(callee, false) && (has_counterpart(node) || !repeats(callee, true));
}

static void find_layers(struct arena *arena, const struct region *region, struct node_list *layers) {
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (node->call == NULL) continue;
    bool known = false; /* several calls name one function, which is visited from each */
    for (int k = 0; k < layers->count; k++) known |= layers->items[k] == node;
    if (known) continue;
    if (is_layer(node))
      ARENA_PUSH(arena, *layers, node);
    else
      find_layers(arena, node->call->callee, layers);
  }
}

/* Layers up to the last of those whose loop stages of a pipeline divide, or of a loop of its own. */
static int end_of_layers(const struct pipeline *pipeline, const struct node *layer) {
  const bool staged = pipeline->stages > 0 && stage_of_layers(pipeline, layer) >= 0;
  const struct call *call = staged ? pipeline->layers[pipeline->stages - 1]->call : layer->call;
  return call->first + call->count;
}

/* Each layer's call as the job wants it. A call that is not repeated is a group of its own. *copy: of the function of
 * layers that stages divide, as it is recomputed. */
static void treat_layer(struct program *program, struct node *layer, struct region **copy) {
  const struct job *job = program->job;
  struct call *call = layer->call;
  const int every = job->memory.checkpoint_every, end = end_of_layers(&program->ranks.pipeline, layer);
  const int first = job->memory.checkpoint_layers - call->first; /* of this call */
  if (job->memory.activation_checkpointing == CHECKPOINTING_EVERY && every > 1 && call->count > 1) {
    group_iterations(program->graph, layer, every);
  } else if (job->memory.activation_checkpointing == CHECKPOINTING_LAYERS && job->memory.checkpoint_layers < end) {
    if (first > 0) split_iterations(program->graph, layer, first < call->count ? first : call->count, copy);
  } else {
    call->callee->recompute = true;
  }
}

static bool choose_layers(struct program *program, struct diagnostics *diags) {
  struct node_list layers = {0};
  struct region *of_stages = NULL;
  find_layers(program->arena, program->graph->entry, &layers);
  if (layers.count == 0) {
    diag_error(diags, job_where(program->job, "memory.activation_checkpointing"),
               "the model calls no function with parameters, so there is no layer to checkpoint");
    diag_help(diags, "write the model's layers as functions, or remove the key");
    return false;
  }
  for (int i = 0; i < layers.count; i++) {
    const bool staged = stage_of_layers(&program->ranks.pipeline, layers.items[i]) >= 0;
    struct region *of_one = NULL;
    treat_layer(program, layers.items[i], staged ? &of_stages : &of_one);
  }
  return true;
}

/* ---- Functions by name ---- */

/* Marks the regions of a function below `region`; whether there are any. */
static bool mark_function(struct region *region, const char *name) {
  bool found = false;
  for (int i = 0; i < region->nodes.count; i++) {
    struct call *call = region->nodes.items[i]->call;
    if (call == NULL) continue;
    bool same = strcmp(call->callee->function, name) == 0;
    call->callee->recompute |= same;
    found |= mark_function(call->callee, name) || same;
  }
  return found;
}

static int collect_functions(const struct region *region, const char **names, int count, int most) {
  for (int i = 0; i < region->nodes.count; i++) {
    const struct call *call = region->nodes.items[i]->call;
    if (call == NULL) continue;
    bool known = false;
    for (int k = 0; k < count; k++) known |= strcmp(names[k], call->callee->function) == 0;
    if (!known && count < most) names[count++] = call->callee->function;
    count = collect_functions(call->callee, names, count, most);
  }
  return count;
}

int checkpointable_functions(const struct graph *graph, const char **names, int most) {
  return collect_functions(graph->entry, names, 0, most);
}

void refuse_function(const struct program *program, const struct named *function, struct diagnostics *diags) {
  const char *names[32];
  struct text list = text_in(program->arena);
  int count = checkpointable_functions(program->graph, names, 32);
  for (int i = 0; i < count; i++) text_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
  diag_error(diags, function->where, "the model calls no function '%s' that has parameters", function->name);
  if (count > 0) diag_help(diags, "its functions with parameters are %s", text_string(&list));
}

/* Whether the stages of a pipeline divide what a region calls, at any depth. */
static bool is_divided(const struct pipeline *pipeline, const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    if (node->call == NULL) continue;
    if (stage_of_layers(pipeline, node) >= 0 || is_divided(pipeline, node->call->callee)) return true;
  }
  return false;
}

/* A stage has a part of such a function, and the backward of its layers is not within it. */
static bool check_stages(const struct program *program, struct diagnostics *diags) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  for (int r = 0; pipeline->stages > 0 && r < program->graph->n_regions; r++) {
    const struct region *region = program->graph->regions[r];
    if (!region->recompute || !is_divided(pipeline, region)) continue;
    diag_error(diags, job_where(program->job, "memory.checkpoint_functions"),
               "'%s' calls the layers that ranks along pp divide, so no rank can compute it again", region->function);
    diag_note(diags, region->where, "it is here");
    diag_help(diags, "name functions that one layer calls, or the layer's own");
    return false;
  }
  return true;
}

static bool choose_functions(struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  bool good = true;
  for (int i = 0; i < job->memory.n_functions; i++) {
    if (mark_function(program->graph->entry, job->memory.functions[i].name)) continue;
    refuse_function(program, &job->memory.functions[i], diags);
    good = false;
  }
  return good && check_stages(program, diags);
}

/* ---- Gradients of weights that come later ---- */

static const struct node *first_call(const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i]->call != NULL) return region->nodes.items[i];
  return NULL;
}

/* A backward saves for the deferred gradients what it computes again, as far as they need it: of a function that it
 * calls, all that the forward would have saved. */
static bool check_deferred(const struct program *program, struct diagnostics *diags) {
  const struct graph *graph = program->graph;
  if (program->ranks.pipeline.stages == 0 || program->job->parallelism.pp_schedule != SCHEDULE_ZERO_BUBBLE) return true;
  for (int r = 0; r < graph->n_regions; r++) {
    const struct region *region = graph->regions[r];
    const struct node *node = region->recompute ? first_call(region) : NULL;
    if (node == NULL) continue;
    diag_error(diags, job_where(program->job, "memory.activation_checkpointing"),
               "'%s' calls '%s', and all that is recomputed in it would be saved for the gradients of weights, which "
               "parallelism.pp_schedule: zero_bubble computes later",
               region->function, node->call->callee->function);
    diag_note(diags, node->where, "it is called here");
    diag_help(diags, "name functions that call no others in memory.checkpoint_functions, or use pp_schedule: 1f1b");
    return false;
  }
  return true;
}

bool choose_recomputation(struct program *program, struct diagnostics *diags) {
  const enum checkpointing way = program->job->memory.activation_checkpointing;
  if (way == CHECKPOINTING_NONE) return true;
  const bool chosen = way == CHECKPOINTING_FUNCTIONS ? choose_functions(program, diags) : choose_layers(program, diags);
  return chosen && check_deferred(program, diags);
}
