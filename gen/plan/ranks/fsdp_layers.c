#include "gen/plan/ranks/fsdp_layers.h"

#include <string.h>

#include "gen/ir/region.h"
#include "gen/plan/graph/recompute.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/plan/memory/weights.h"
#include "gen/plan/ranks/layer_search.h"
#include "gen/plan/ranks/tree.h"
#include "gen/program/match.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

/* ---- Which arrays ---- */

void layers_give_slots(struct weight_tree *tree, const char *path, int slots) {
  struct weight_array *array = weight_node_at(tree->root, path)->array;
  array->slots = array->count < slots ? array->count : slots;
}

void layers_forget_zeros(struct program *program, const struct weight_node *node) {
  if (node->parameter != NULL) weight_named(program->weights, node->path)->zero = false;
  for (int i = 0; i < node->n_children; i++) layers_forget_zeros(program, node->children[i]);
}

/* Adds the units of an array whose uses these are; returns the most layers of one. */
static int add_units(struct program *program, const struct layer_uses *uses, int count, int first) {
  const char **paths = arena_alloc(program->arena, (size_t)count * sizeof *paths);
  int most = 0;
  for (int i = 0; i < count; i++) {
    paths[i] = uses[i].element->path;
    if (uses[i].begins[0] == first + i) {
      struct fsdp_unit unit = {.paths = paths + i};
      ARENA_PUSH(program->arena, program->ranks.fsdp_units, unit);
    }
    struct fsdp_unit *unit = &program->ranks.fsdp_units.items[program->ranks.fsdp_units.count - 1];
    if (++unit->layers > most) most = unit->layers;
  }
  return most;
}

/* The array whose first element is candidate `first`. */
static void fold_array(struct program *program, const struct layer_search *search, int first) {
  const struct weight_array *array = search->items[first].element->array;
  const int slots = FSDP_SLOTS * add_units(program, search->items + first, array->count, first);
  if (weights_are_split(program)) layers_give_slots(program->weights, array->elements[0]->path, slots);
  if (gradients_are_split(program)) layers_give_slots(program->gradients, array->elements[0]->path, slots);
  for (int i = slots; i < array->count && gradients_are_split(program); i++)
    layers_forget_zeros(program, array->elements[i]);
}

/* The key by which ranks divide. */
static struct location cause_of(const struct job *job) {
  if (job->parallelism.n_wrapped > 0) return job->parallelism.wrapped[0].where;
  const struct location stage = job_where(job, "parallelism.zero_stage");
  return stage.line > 0 ? stage : job_where(job, "parallelism.fsdp.sharding_strategy");
}

/* Ranks have a shard of each sharded weight. */
static bool check_all_trained(const struct program *program, struct diagnostics *diags) {
  for (int i = 0; i < program->weights->count && weights_are_split(program); i++) {
    if (program->weights->items[i].gradient >= 0) continue;
    diag_error(diags, cause_of(program->job), "'%s' is not trained, so no update would gather its shards",
               program->weights->items[i].path);
    diag_help(diags, "use zero_stage: 2, which shards gradients and states alone");
    return false;
  }
  return true;
}

enum { MANY_FUNCTIONS = 256 };

static bool check_wrapped(const struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  const char *names[MANY_FUNCTIONS];
  int count = checkpointable_functions(program->graph, names, MANY_FUNCTIONS);
  for (int i = 0; i < job->parallelism.n_wrapped; i++) {
    bool known = false;
    for (int k = 0; k < count; k++) known |= strcmp(names[k], job->parallelism.wrapped[i].name) == 0;
    if (!known) refuse_function(program, &job->parallelism.wrapped[i], diags);
  }
  return diags->errors == 0;
}

static bool check_ignored(const struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  struct name_list names = {0};
  for (int i = 0; i < program->weights->count; i++) ARENA_PUSH(program->arena, names, program->weights->items[i].path);
  for (int i = 0; i < job->parallelism.n_ignored; i++) {
    const struct named *pattern = &job->parallelism.ignored[i];
    bool found = false;
    name_pattern_check(pattern->name, pattern->where, diags);
    for (int k = 0; k < names.count && diags->errors == 0; k++) found |= name_matches(pattern->name, names.items[k]);
    if (!found && diags->errors == 0)
      name_pattern_unmatched(program->arena, pattern->name, &names, pattern->where, diags);
  }
  return diags->errors == 0;
}

/* Why no layer can be held alone. */
static void refuse_layers(const struct program *program, const struct weight *obstacle, struct diagnostics *diags) {
  const struct location where = cause_of(program->job);
  if (obstacle == NULL)
    diag_error(
        diags, where,
        "the model has no loop over layers whose parameters are those of one call each, to hold one layer at a time");
  else
    diag_error(diags, where,
               "layers are held one at a time, which takes a gradient for each parameter, but '%s' is not trained",
               obstacle->path);
  diag_help(diags, "use zero_stage: 1, which shards the optimizer's states");
}

/* Whether layers are to be found. */
static bool has_layers_to_find(const struct program *program) {
  if (program->kind != PROGRAM_TRAIN || graph_backward_of(program->graph, program->graph->entry) == NULL) return false;
  return weights_are_split(program) || gradients_are_split(program);
}

static void add_whole(struct program *program, const char *line) {
  struct program_placed *placed = &program->ranks.placed;
  const char **whole = arena_alloc(program->arena, ((size_t)placed->n_whole + 1) * sizeof *whole);
  for (int i = 0; i < placed->n_whole; i++) whole[i] = placed->whole[i];
  whole[placed->n_whole++] = line;
  placed->whole = whole;
}

bool check_fsdp_names(const struct program *program, struct diagnostics *diags) {
  return !has_layers_to_find(program) || (check_wrapped(program, diags) && check_ignored(program, diags));
}

bool keep_shared_layers_whole(struct program *program) {
  if (!has_layers_to_find(program)) return false;
  const struct layer_search search = search_layers(program);
  if (search.obstacle == NULL || search.obstacle->gradient < 0) return false;
  for (int i = 0; i < search.count; i++)
    if (begins_layers(&search, i)) return false;
  struct mesh_axis *axis = &program->mesh.axes[program->mesh.shards];
  axis->gradients = PLACED_PARTIAL;
  axis->weights = PLACED_WHOLE;
  add_whole(program, arena_printf(program->arena,
                                  "%s and the other parameters, with their gradients: several calls share it, so no "
                                  "layer comes and goes; only states are divided, as with zero_stage: 1",
                                  search.obstacle->path));
  return true;
}

bool plan_fsdp_layers(struct program *program, struct diagnostics *diags) {
  if (!has_layers_to_find(program)) return true;
  if (!check_all_trained(program, diags)) return false;
  const struct layer_search search = search_layers(program);
  for (int i = 0; i < search.count; i++)
    if (begins_layers(&search, i)) fold_array(program, &search, i);
  weights_fold(program->weights);
  weights_fold(program->gradients);
  if (program->ranks.fsdp_units.count > 0) return true;
  refuse_layers(program, search.obstacle, diags);
  return false;
}

static bool has_weight(const struct fsdp_unit *unit, const struct weight *weight) {
  bool has = false;
  for (int i = 0; i < unit->layers; i++) {
    const size_t length = strlen(unit->paths[i]);
    has |= strncmp(weight->place, unit->paths[i], length) == 0 && weight->place[length] == '.';
  }
  return has;
}

int fsdp_unit_of(const struct program *program, const struct weight *weight) {
  for (int i = 0; i < program->ranks.fsdp_units.count; i++)
    if (has_weight(&program->ranks.fsdp_units.items[i], weight)) return i;
  return -1;
}

void place_units(struct program *program) {
  struct weight_tree *tree = program->weights;
  int64_t end = tree->bytes = weights_type(tree)->bytes;
  for (int u = 0; u < program->ranks.fsdp_units.count; u++) {
    struct fsdp_unit *unit = &program->ranks.fsdp_units.items[u];
    unit->offset = end;
    end += weight_node_at(tree->root, unit->paths[0])->type->bytes;
  }
  for (int i = 0; i < tree->count; i++) {
    struct weight *weight = &tree->items[i];
    const int unit = fsdp_unit_of(program, weight);
    weight->offset = weight_offset(tree, weight->place);
    if (unit >= 0)
      weight->offset += program->ranks.fsdp_units.items[unit].offset -
                        weight_offset(tree, program->ranks.fsdp_units.items[unit].paths[0]);
  }
}

/* ---- When they come and leave ---- */

/* The iterations that use units, in the order in which they run; of a pipeline, the stage that does. */
struct use {
  struct step *step;
  int iteration, fsdp_unit, stage;
};
struct use_list {
  struct use *items;
  int count, capacity;
};

static int fsdp_unit_at(const struct program *program, const char *path) {
  for (int i = 0; i < program->ranks.fsdp_units.count; i++)
    for (int k = 0; k < program->ranks.fsdp_units.items[i].layers; k++)
      if (strcmp(program->ranks.fsdp_units.items[i].paths[k], path) == 0) return i;
  return -1;
}

static int *new_row(struct arena *arena, int count) {
  int *row = arena_alloc(arena, ((size_t)count + 1) * sizeof *row);
  for (int i = 0; i < count; i++) row[i] = -1;
  return row;
}

static void add_uses(struct program *program, struct use_list *list, const struct function *function, int stage,
                     const char *const *prefixes) {
  for (int s = 0; s < function->n_steps; s++) {
    struct step *step = &function->steps[s];
    const struct call *call = step->node->call;
    if (function->staged) stage = step->stage;
    for (int k = 0; step->callee != NULL && k < call->count; k++) {
      int iteration = call->forward != NULL ? call->count - 1 - k : k;
      const char *const *inner = weight_scopes(program->arena, call, iteration, prefixes);
      int unit = -1;
      for (int i = 0; i < call->callee->n_scopes && unit < 0; i++) unit = fsdp_unit_at(program, inner[i]);
      if (unit < 0) {
        add_uses(program, list, step->callee, stage, inner);
        continue;
      }
      if (step->used == NULL) {
        step->used = new_row(program->arena, call->count);
        step->begins = new_row(program->arena, call->count);
        step->arrives = new_row(program->arena, call->count);
      }
      step->used[iteration] = unit;
      struct use use = {step, iteration, unit, stage};
      ARENA_PUSH(program->arena, *list, use);
    }
  }
}

static const struct weight_node *layer_node(const struct program *program, int unit, int layer) {
  const struct weight_tree *tree = weights_come(program) ? program->weights : program->gradients;
  return weight_node_at(tree->root, program->ranks.fsdp_units.items[unit].paths[layer]);
}

/* Whether two units take a slot of one array that is the same. */
static bool share_slot(const struct program *program, int a, int b) {
  const struct fsdp_unit *units = program->ranks.fsdp_units.items;
  bool shared = false;
  for (int i = 0; i < units[a].layers; i++)
    for (int k = 0; k < units[b].layers; k++) {
      const struct weight_node *p = layer_node(program, a, i), *q = layer_node(program, b, k);
      shared |= p->array == q->array &&
                weight_position(p->array, weight_element(p)) == weight_position(q->array, weight_element(q));
    }
  return shared;
}

/* Gathers, each started before the use that is ahead of its own; what is still there is not gathered again. */
static void add_gathers(struct program *program, const struct use_list *list, bool *here) {
  if (list->count > 0) list->items[0].step->arrives[list->items[0].iteration] = list->items[0].fsdp_unit;
  for (int i = 0; i + 1 < list->count; i++) {
    int next = list->items[i + 1].fsdp_unit;
    here[list->items[i].fsdp_unit] = true;
    if (here[next]) continue;
    for (int u = 0; u < program->ranks.fsdp_units.count; u++)
      if (u != next && share_slot(program, u, next)) here[u] = false;
    here[next] = true;
    list->items[i].step->begins[list->items[i].iteration] = next;
    list->items[i + 1].step->arrives[list->items[i + 1].iteration] = next;
  }
}

/* The sums that have been started when the gradients of a use are on their way. Without stages all buckets are sent in
 * the order of the flat ranges; a stage sends those of its layers alone before it waits for all of them. */
static int sums_after(const struct program *program, const struct use_list *list, int use) {
  const struct fsdp_unit *units = program->ranks.fsdp_units.items;
  int sums = 0;
  if (program->ranks.pipeline.stages == 0) return units[list->items[use].fsdp_unit].end * tree_sums(program);
  for (int i = 0; i <= use; i++) sums += units[list->items[i].fsdp_unit].end - units[list->items[i].fsdp_unit].first;
  return sums;
}

/* Gradients of a unit take the memory of the one before it in that slot, after these are sent. */
static void chain_slots(struct program *program, const struct use_list *list) {
  for (int i = 0; i < list->count; i++) {
    const struct use *use = &list->items[i];
    int last = -1;
    for (int k = 0; k < i; k++)
      if (share_slot(program, list->items[k].fsdp_unit, use->fsdp_unit)) last = k;
    if (last < 0) continue;
    if (use->step->reduced == NULL) use->step->reduced = new_row(program->arena, use->step->node->call->count);
    use->step->reduced[use->iteration] = sums_after(program, list, last);
  }
}

static void find_flat_ranges(struct program *program) {
  for (int u = 0; u < program->ranks.fsdp_units.count; u++) program->ranks.fsdp_units.items[u].first = -1;
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    int unit = program->optimizer.flat_ranges.items[i].fsdp_unit;
    if (unit < 0) continue;
    if (program->ranks.fsdp_units.items[unit].first < 0) program->ranks.fsdp_units.items[unit].first = i;
    program->ranks.fsdp_units.items[unit].end = i + 1;
  }
}

void plan_gathers(struct program *program) {
  static const char *const root[] = {""};
  struct use_list forward = {0}, backward = {0}, evaluation = {0};
  if (program->ranks.fsdp_units.count == 0) return;
  find_flat_ranges(program);
  add_uses(program, &forward, program->entry.forward, 0, root);
  if (program->entry.backward != NULL) add_uses(program, &backward, program->entry.backward, 0, root);
  if (program->entry.second != NULL) add_uses(program, &evaluation, program->entry.second, 0, root);
  if (gradients_are_split(program)) chain_slots(program, &backward);
  program->ranks.first_fsdp_unit = forward.items[0].fsdp_unit;
  if (!weights_come(program)) return;
  bool *here = arena_alloc(program->arena, ((size_t)program->ranks.fsdp_units.count + 1) * sizeof *here);
  add_gathers(program, &evaluation, here);
  memset(here, 0, (size_t)program->ranks.fsdp_units.count * sizeof *here);
  struct use_list all = {0};
  for (int i = 0; i < forward.count; i++) ARENA_PUSH(program->arena, all, forward.items[i]);
  for (int i = 0; i < backward.count; i++) ARENA_PUSH(program->arena, all, backward.items[i]);
  add_gathers(program, &all, here);
}

/* ---- The same of the stages of a pipeline ---- */

static struct use_list uses_of_stage(struct program *program, const struct use_list *all, int stage) {
  struct use_list list = {0};
  for (int i = 0; i < all->count; i++)
    if (all->items[i].stage == stage) ARENA_PUSH(program->arena, list, all->items[i]);
  return list;
}

/* What a stage uses in one way of a micro-batch: which unit comes first, and when the others come. Between two
 * micro-batches of a stage, or its forward and its backward, others may have been where its layers were. What is
 * deferred adds to gradients alone. */
static int plan_stage(struct program *program, const struct function *function, int stage, bool *here) {
  static const char *const root[] = {""};
  struct use_list all = {0};
  add_uses(program, &all, function, 0, root);
  struct use_list own = uses_of_stage(program, &all, stage);
  if (function->forward != NULL) chain_slots(program, &own);
  memset(here, 0, (size_t)program->ranks.fsdp_units.count * sizeof *here);
  if (weights_are_split(program) && !is_deferred(function)) add_gathers(program, &own, here);
  return own.count > 0 ? own.items[0].fsdp_unit : -1;
}

/* A deferred statement of layers that takes weights whose memory has other layers by then; NULL: none does.
 */
static const struct step *late_reader(const struct program *program) {
  for (int f = 0; f < program->functions.count; f++)
    for (int i = 0; i < program->functions.items[f]->n_steps; i++) {
      const struct step *step = &program->functions.items[f]->steps[i];
      const struct function *callee = step->callee;
      bool late = callee != NULL && (is_deferred(callee) || is_deferred(program->functions.items[f]));
      for (int s = 0; late && s < callee->region->n_scopes; s++)
        if (step->used != NULL && (callee->uses_weights[s] || callee->uses_bits16_weights[s])) return step;
    }
  return NULL;
}

bool plan_stage_gathers(struct program *program, struct diagnostics *diags) {
  struct pipeline *pipeline = &program->ranks.pipeline;
  const size_t count = (size_t)pipeline->stages;
  if (program->ranks.fsdp_units.count == 0) return true;
  find_flat_ranges(program);
  bool *here = arena_alloc(program->arena, ((size_t)program->ranks.fsdp_units.count + 1) * sizeof *here);
  pipeline->first_units = arena_alloc(program->arena, count * sizeof *pipeline->first_units);
  pipeline->last_units = arena_alloc(program->arena, count * sizeof *pipeline->last_units);
  for (int k = 0; k < pipeline->stages; k++) {
    pipeline->first_units[k] = plan_stage(program, program->entry.forward, k, here);
    pipeline->last_units[k] = plan_stage(program, program->entry.backward, k, here);
    if (program->entry.deferred != NULL) plan_stage(program, program->entry.deferred, k, here);
    if (program->entry.second != NULL) plan_stage(program, program->entry.second, k, here);
  }
  const struct step *reader = weights_are_split(program) ? late_reader(program) : NULL;
  if (reader == NULL) return true;
  diag_error(diags, job_where(program->job, "parallelism.pp_schedule"),
             "deferred gradients need weights of '%s', whose memory has other layers by then",
             reader->callee->region->function);
  diag_note(diags, reader->node->where, "it is called here");
  diag_help(diags, "use zero_stage: 2, or parallelism.pp_schedule: 1f1b");
  return false;
}
