#include "gen/plan/graph/stages.h"

#include <string.h>

#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/segments.h"
#include "gen/plan/graph/weight_walk.h"

enum { MOST_STAGES = 32 }; /* bits of step.stages */

/* The call with the most iterations that the region makes, itself or in regions that it calls once; NULL: none is
 * repeated. */
static struct node *longest_loop(const struct region *region) {
  struct node *longest = NULL;
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (node->call == NULL) continue;
    struct node *found = node->call->count > 1 ? node : longest_loop(node->call->callee);
    if (found != NULL && (longest == NULL || found->call->count > longest->call->count)) longest = found;
  }
  return longest;
}

/* Whether all of the model runs the region once at most. */
static bool runs_once(const struct graph *graph, const struct region *region) {
  while (region != graph->entry) {
    const struct node *call = graph_only_call(graph, region);
    if (call == NULL || call->call->count > 1) return false;
    region = call->region;
  }
  return true;
}

/* Each rank has several stages of so many layers. */
static bool check_chunks(const struct program *program, const struct node *layers, struct diagnostics *diags) {
  const int64_t ranks = program->job->parallelism.axes[AXIS_PP], each = program->job->parallelism.chunk_layers;
  const int64_t count = layers->call->count;
  struct location where = job_where(program->job, "parallelism.megatron.num_layers_per_virtual_pipeline_stage");
  if (count % (ranks * each) != 0 || count == ranks * each) {
    diag_error(diags, where, "%lld layers are not two or more times %lld layers on each of %lld ranks",
               (long long)count, (long long)each, (long long)ranks);
    diag_note(diags, layers->where, "the loop over layers is here");
    diag_help(diags, "let the number of layers be a multiple of it times parallelism.pp, or leave it out");
    return false;
  }
  if (count / each <= MOST_STAGES) return true;
  diag_error(diags, where, "%lld layers in stages of %lld are more than %d stages", (long long)count, (long long)each,
             MOST_STAGES);
  diag_help(diags, "let stages have more layers");
  return false;
}

static bool check(const struct program *program, const struct node *layers, struct diagnostics *diags) {
  int64_t stages = program->job->parallelism.axes[AXIS_PP];
  struct location where = job_where(program->job, "parallelism.pp");
  if (layers == NULL || !runs_once(program->graph, layers->region)) {
    diag_error(diags, where, "the model has no loop over layers that %lld ranks could divide", (long long)stages);
    diag_help(diags, "leave it out; layers are divided where a 'for' of the model calls one function for each");
    return false;
  }
  if (program->job->parallelism.chunk_layers > 0) return check_chunks(program, layers, diags);
  if (layers->call->count >= stages) return true;
  diag_error(diags, where, "%lld ranks have no layer each of %d", (long long)stages, layers->call->count);
  diag_note(diags, layers->where, "the loop over layers is here");
  diag_help(diags, "let there be as many layers at least");
  return false;
}

/* ---- Parameters ---- */

static void add_own(struct program *program, int stage, const char *name) {
  struct parameter_names *own = &program->ranks.pipeline.own[stage % program->ranks.pipeline.ranks];
  for (int i = 0; i < own->count; i++)
    if (strcmp(own->items[i], name) == 0) return;
  ARENA_PUSH(program->arena, *own, name);
}

/* The value whose elements are looked at. */
static const struct value *viewed(const struct value *value) {
  while (value->kind == VALUE_RESULT && value->producer->kind->class == OP_VIEW) value = value->producer->inputs[0];
  return value;
}

/* Whether a call is of these layers: of all of them, or of some after they were split once more. */
static bool is_of_layers(const struct node *layers, const struct node *node) {
  const struct call *all = layers->call, *call = node->call;
  return call != NULL && node->region == layers->region && call->number == all->number && call->first >= all->first &&
         call->first < all->first + all->count * all->step;
}

int stage_of_layers(const struct pipeline *pipeline, const struct node *call) {
  for (int k = 0; k < pipeline->stages; k++)
    if (is_of_layers(pipeline->layers[k], call) ||
        (pipeline->second_layers != NULL && is_of_layers(pipeline->second_layers[k], call)))
      return k;
  return -1;
}

static bool reaches_layers(const struct pipeline *pipeline, const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    if (node->call != NULL && (stage_of_layers(pipeline, node) >= 0 || reaches_layers(pipeline, node->call->callee)))
      return true;
  }
  return false;
}

/* The names of what a region uses, where nodes before the layers are of the first stage and those after of the last:
 * `stage` of the first node; returns that of what follows the last one. */
static int note_own(struct program *program, const struct region *region, const char *const *prefixes, int stage) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    const int layers = stage_of_layers(pipeline, node);
    if (layers >= 0) stage = layers;
    for (int k = 0; k < node->n_inputs && node->kind->class != OP_VIEW; k++) {
      const struct value *value = viewed(node->inputs[k]);
      if (value->kind != VALUE_PARAMETER) continue;
      const struct parameter *p = &region->parameters.items[value->index];
      add_own(program, stage, weight_path(program->arena, prefixes[p->scope], p->path));
    }
    int after = stage;
    for (int k = 0; node->call != NULL && k < node->call->count; k++)
      after = note_own(program, node->call->callee, weight_scopes(program->arena, node->call, k, prefixes), stage);
    if (node->call != NULL && reaches_layers(pipeline, node->call->callee)) stage = after;
  }
  return stage;
}

/* A gradient is added up by the stages of two ranks at most. */
static bool check_shared(const struct program *program, struct diagnostics *diags) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  for (int i = 0; i < pipeline->own[0].count; i++) {
    int ranks = 1;
    for (int k = 1; k < pipeline->ranks; k++)
      for (int n = 0; n < pipeline->own[k].count; n++)
        ranks += strcmp(pipeline->own[k].items[n], pipeline->own[0].items[i]) == 0;
    if (ranks <= 2) continue;
    diag_error(diags, job_where(program->job, "parallelism.pp"), "%d stages use '%s', and two at most can", ranks,
               pipeline->own[0].items[i]);
    diag_help(diags, "set parallelism.pp to 2, or give layers parameters of their own");
    return false;
  }
  return true;
}

/* What the model assigns to is of one rank's batches, and no gradient says whose it is. */
static bool check_buffers(const struct program *program, struct diagnostics *diags) {
  for (int r = 0; r < program->graph->n_regions; r++)
    for (int i = 0; i < program->graph->regions[r]->parameters.count; i++) {
      const struct parameter *p = &program->graph->regions[r]->parameters.items[i];
      if (!p->buffer || p->passing) continue;
      diag_error(diags, job_where(program->job, "parallelism.pp"), "ranks divide no layers of a model with buffers");
      diag_note(diags, p->where, "'%s' is one", p->path);
      diag_help(diags, "take a model without running statistics, or leave parallelism.pp out");
      return false;
    }
  return true;
}

/* The layers of stage k: those that are left over are one more on stages in the middle, which have nothing but layers.
 */
static int layers_of_stage(int layers, int stages, int k) {
  const int left = layers % stages, first = (stages - left + 1) / 2;
  return layers / stages + (k >= first && k < first + left);
}

/* One call of the layers of each stage, one after the other, in place of the one of all. */
static struct node **divide(const struct program *program, struct node *layers, int stages) {
  struct region *region = layers->region;
  const int count = layers->call->count;
  struct node **divided = arena_alloc(program->arena, (size_t)stages * sizeof *divided);
  for (int k = 0; k < stages; k++) {
    const int at = region_position(layers);
    if (k + 1 < stages) peel_iterations(program->graph, layers, layers_of_stage(count, stages, k));
    divided[k] = region->nodes.items[at];
    if (k + 1 < stages) layers = region->nodes.items[at + 1];
  }
  name_values(program->arena, region);
  return divided;
}

bool divide_layers(struct program *program, struct diagnostics *diags) {
  const int ranks = (int)program->job->parallelism.axes[AXIS_PP];
  if (ranks <= 1) return true;
  struct node *layers = longest_loop(program->graph->entry);
  if (!check(program, layers, diags) || !check_buffers(program, diags)) return false;
  struct pipeline *pipeline = &program->ranks.pipeline;
  const int64_t each = program->kind == PROGRAM_TRAIN ? program->job->parallelism.chunk_layers : 0;
  const int stages = each > 0 ? (int)(layers->call->count / each) : ranks;
  pipeline->stages = stages;
  pipeline->ranks = ranks;
  pipeline->layers = divide(program, layers, stages);
  if (program->entry.second_region != NULL)
    pipeline->second_layers = divide(program, longest_loop(program->entry.second_region), stages);
  static const char *const root[] = {""};
  pipeline->own = arena_alloc(program->arena, (size_t)ranks * sizeof *pipeline->own);
  note_own(program, program->graph->entry, root, 0);
  return check_shared(program, diags);
}
