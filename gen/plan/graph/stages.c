#include "gen/plan/graph/stages.h"

#include <string.h>

#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/segments.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/fp8.h"

enum { MOST_STAGES = 32 }; /* bits of step.stages */

/* Loops over layers, in the order in which they run. */
struct loops {
  struct node **items;
  int count, capacity;
};

/* The repeated calls that the region makes, itself or in regions that it calls once. */
static void add_loops(struct arena *arena, const struct region *region, struct loops *loops) {
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (node->call == NULL) continue;
    if (node->call->count > 1)
      ARENA_PUSH(arena, *loops, node);
    else
      add_loops(arena, node->call->callee, loops);
  }
}

/* The loops whose layers stages have: of two in functions of their own, as an encoder's and a decoder's, both; else the
 * one with the most layers. */
static struct loops loops_of(struct arena *arena, const struct region *region) {
  struct loops all = {0}, one = {0};
  add_loops(arena, region, &all);
  if (all.count == 2 && all.items[0]->region != all.items[1]->region) return all;
  struct node *longest = NULL;
  for (int i = 0; i < all.count; i++)
    if (longest == NULL || all.items[i]->call->count > longest->call->count) longest = all.items[i];
  if (longest != NULL) ARENA_PUSH(arena, one, longest);
  return one;
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

/* The layers of all loops. */
static int64_t count_layers_of(const struct loops *loops) {
  int64_t count = 0;
  for (int i = 0; i < loops->count; i++) count += loops->items[i]->call->count;
  return count;
}

/* As many stages as there are ranks, or several times as many, of so many layers at least. */
static int stage_count(int64_t layers, int64_t ranks, int64_t each) {
  return (int)(each > 0 ? layers / (ranks * each) * ranks : ranks);
}

/* Each rank has several stages of so many layers; of an encoder and a decoder, a stage has layers of one of them. */
static bool check_chunks(const struct program *program, const struct loops *loops, struct diagnostics *diags) {
  const int64_t ranks = mesh_ranks(program, SHARDED_LAYERS), each = program->job->parallelism.chunk_layers;
  const int64_t count = count_layers_of(loops);
  const struct node *layers = loops->items[0];
  struct location where = job_where(program->job, "parallelism.megatron.num_layers_per_virtual_pipeline_stage");
  if (count < 2 * ranks * each || (loops->count == 2 && count % (ranks * each) != 0)) {
    diag_error(diags, where, "%lld layers are not two or more times %lld layers on each of %lld ranks",
               (long long)count, (long long)each, (long long)ranks);
    diag_note(diags, layers->where, "the loop over layers is here");
    diag_help(diags,
              loops->count == 2
                  ? "let the number of layers be a multiple of it times parallelism.pp, or leave it out"
                  : "let there be at least two times as many layers as it times parallelism.pp, or leave it out");
    return false;
  }
  if (layers->call->count % each != 0) {
    diag_error(diags, where,
               "a stage of %lld layers would have some of the %d of the first loop and some of the second",
               (long long)each, layers->call->count);
    diag_note(diags, layers->where, "the first loop over layers is here");
    diag_help(diags, "let it divide the layers of both");
    return false;
  }
  if (stage_count(count, ranks, each) <= MOST_STAGES) return true;
  diag_error(diags, where, "%lld layers in stages of %lld are more than %d stages", (long long)count, (long long)each,
             MOST_STAGES);
  diag_help(diags, "let stages have more layers");
  return false;
}

/* How many of all stages have layers of the first of two loops: as the job says, or by the numbers of layers. */
static int first_stages(const struct program *program, const struct loops *loops, int stages) {
  const int first = loops->items[0]->call->count, all = first + loops->items[1]->call->count;
  const int64_t given = program->job->parallelism.split_rank;
  if (given > 0) return (int)given;
  const int most = stages - 1, count = (2 * stages * first + all) / (2 * all);
  return count < 1 ? 1 : count > most ? most : count;
}

static bool check_count(const struct program *program, const struct node *layers, int stages,
                        struct diagnostics *diags) {
  if (layers->call->count >= stages) return true;
  diag_error(diags, job_where(program->job, "parallelism.pp"), "%d ranks have no layer each of %d", stages,
             layers->call->count);
  diag_note(diags, layers->where, "the loop over layers is here");
  diag_help(diags, "let there be as many layers at least");
  return false;
}

/* Of an encoder and a decoder. */
static bool check_two(const struct program *program, const struct loops *loops, struct diagnostics *diags) {
  const int ranks = (int)mesh_ranks(program, SHARDED_LAYERS), first = first_stages(program, loops, ranks);
  if (program->job->parallelism.chunk_layers == 0)
    return check_count(program, loops->items[0], first, diags) &&
           check_count(program, loops->items[1], ranks - first, diags);
  if (program->job->parallelism.split_rank == 0) return check_chunks(program, loops, diags);
  diag_error(diags, job_where(program->job, "parallelism.megatron.pipeline_model_parallel_split_rank"),
             "with several stages on each rank, the layers of a stage say with which one the decoder begins");
  diag_help(diags, "leave it out");
  return false;
}

static bool check(const struct program *program, const struct loops *loops, struct diagnostics *diags) {
  int64_t stages = mesh_ranks(program, SHARDED_LAYERS);
  struct location where = job_where(program->job, "parallelism.pp");
  bool once = loops->count > 0;
  for (int i = 0; i < loops->count; i++) once = once && runs_once(program->graph, loops->items[i]->region);
  if (!once) {
    diag_error(diags, where, "the model has no loop over layers that %lld ranks could divide", (long long)stages);
    diag_help(diags, "leave it out; layers are divided where a 'for' of the model calls one function for each");
    return false;
  }
  if (loops->count == 2) return check_two(program, loops, diags);
  if (program->job->parallelism.split_rank > 0) {
    diag_error(diags, job_where(program->job, "parallelism.megatron.pipeline_model_parallel_split_rank"),
               "the model has no encoder and decoder, each with a loop over layers");
    diag_help(diags, "leave it out");
    return false;
  }
  if (program->job->parallelism.chunk_layers > 0) return check_chunks(program, loops, diags);
  return check_count(program, loops->items[0], (int)stages, diags);
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

/* The stages of the layers that a node runs, itself or in what it calls: sets the first and the last one. False: it
 * runs none. */
static bool stages_of(const struct pipeline *pipeline, const struct node *node, int *first, int *last) {
  const struct region *callee = node->call != NULL ? node->call->callee : NULL;
  bool any = false;
  *first = *last = stage_of_layers(pipeline, node);
  if (*first >= 0) return true;
  for (int i = 0; callee != NULL && i < callee->nodes.count; i++) {
    int begins, ends;
    if (!stages_of(pipeline, callee->nodes.items[i], &begins, &ends)) continue;
    if (!any) *first = begins;
    *last = ends;
    any = true;
  }
  return any;
}

/* The names of what a region uses. A node is of the stage whose layers come next, and after all of them of the last;
 * where the region has no layers, of `stage`. */
static void note_own(struct program *program, const struct region *region, const char *const *prefixes, int stage) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  int first, last, *own = arena_alloc(program->arena, ((size_t)region->nodes.count + 1) * sizeof *own);
  for (int i = region->nodes.count - 1, next = -1; i >= 0; i--) {
    const bool any = stages_of(pipeline, region->nodes.items[i], &first, &last);
    own[i] = any ? first : next >= 0 ? next : -1;
    if (any) next = first;
  }
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    if (own[i] >= 0) stage = own[i];
    for (int k = 0; k < node->n_inputs && node->kind->class != OP_VIEW; k++) {
      const struct value *value = viewed(node->inputs[k]);
      if (value->kind != VALUE_PARAMETER) continue;
      const struct parameter *p = &region->parameters.items[value->index];
      add_own(program, stage, weight_path(program->arena, prefixes[p->scope], p->path));
    }
    for (int k = 0; node->call != NULL && k < node->call->count; k++)
      note_own(program, node->call->callee, weight_scopes(program->arena, node->call, k, prefixes), stage);
    if (stages_of(pipeline, node, &first, &last)) stage = last;
  }
}

/* What the model assigns to is of one rank's batches, and no gradient says whose it is; but for sizes of a layer's
 * tensors, which the stage with the layer has. */
static bool check_buffers(const struct program *program, struct diagnostics *diags) {
  for (int r = 0; r < program->graph->n_regions; r++)
    for (int i = 0; i < program->graph->regions[r]->parameters.count; i++) {
      const struct parameter *p = &program->graph->regions[r]->parameters.items[i];
      if (!p->buffer || p->passing || is_fp8_state(p->path)) continue;
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

/* One call of the layers of each stage, one after the other, instead of the one of all. */
static void divide(const struct program *program, struct node *layers, int stages, struct node **stage_calls) {
  struct region *region = layers->region;
  const int count = layers->call->count;
  for (int k = 0; k < stages; k++) {
    const int at = region_position(layers);
    if (k + 1 < stages) peel_iterations(program->graph, layers, layers_of_stage(count, stages, k));
    stage_calls[k] = region->nodes.items[at];
    if (k + 1 < stages) layers = region->nodes.items[at + 1];
  }
  name_values(program->arena, region);
}

/* That of an entry. */
static struct node **divide_entry(const struct program *program, const struct region *entry, int stages) {
  const struct loops loops = loops_of(program->arena, entry);
  struct node **stage_calls = arena_alloc(program->arena, (size_t)stages * sizeof *stage_calls);
  const int first = loops.count == 2 ? first_stages(program, &loops, stages) : stages;
  divide(program, loops.items[0], first, stage_calls);
  if (loops.count == 2) divide(program, loops.items[1], stages - first, stage_calls + first);
  return stage_calls;
}

bool divide_layers(struct program *program, struct diagnostics *diags) {
  const int ranks = (int)mesh_ranks(program, SHARDED_LAYERS);
  if (ranks <= 1) return true;
  const struct loops loops = loops_of(program->arena, program->graph->entry);
  if (!check(program, &loops, diags) || !check_buffers(program, diags)) return false;
  struct pipeline *pipeline = &program->ranks.pipeline;
  const int64_t each = program->kind == PROGRAM_TRAIN ? program->job->parallelism.chunk_layers : 0;
  const int stages = stage_count(count_layers_of(&loops), ranks, each);
  pipeline->stages = stages;
  pipeline->ranks = ranks;
  pipeline->split = loops.count == 2 ? first_stages(program, &loops, stages) : 0;
  pipeline->layers = divide_entry(program, program->graph->entry, stages);
  if (program->entry.second_region != NULL)
    pipeline->second_layers = divide_entry(program, program->entry.second_region, stages);
  static const char *const root[] = {""};
  pipeline->own = arena_alloc(program->arena, (size_t)ranks * sizeof *pipeline->own);
  note_own(program, program->graph->entry, root, 0);
  return true;
}
