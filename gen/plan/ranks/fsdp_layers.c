#include "gen/plan/ranks/fsdp_layers.h"

#include <stdlib.h>
#include <string.h>

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/recompute.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/plan/memory/weights.h"
#include "gen/plan/ranks/tree.h"
#include "gen/program/adapters.h"
#include "gen/program/match.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"
#include "gen/program/target.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

/* ---- Which arrays ---- */

/* How often the forward, the backward and an evaluation use an element as a call's parameters, and with which candidate
 * those of the last such call begin. */
enum { RUNS = 3 };
struct uses {
  struct weight_node *element;
  int times[RUNS], begins[RUNS];
};

struct layer_search {
  struct program *program;
  struct uses *items;
  int count, capacity;
  int run, newest, together;     /* the first element of the last call in this run, of so many; -1: none yet */
  const struct weight *obstacle; /* the first that keeps layers from being held one at a time */
};

static int64_t elements_of(const struct weight_node *node) {
  int64_t elements = node->parameter != NULL ? shape_count(node->parameter->shape) : 0;
  for (int i = 0; i < node->n_children; i++) elements += elements_of(node->children[i]);
  return elements;
}

/* The first weight without a gradient that one call alone gives; NULL: all have one. */
static const struct weight *without_own_gradient(const struct program *program, const struct weight_node *node) {
  const struct weight *found = NULL;
  if (node->parameter != NULL) {
    const struct weight *weight = weight_named(program->weights, node->path);
    if (node->parameter->buffer && !weights_are_split(program)) return NULL; /* it is there whole */
    bool alone = weight->gradient >= 0 && (!weight->zero || weight->unreached || gradients_add_up(program));
    return alone ? NULL : weight;
  }
  for (int i = 0; i < node->n_children && found == NULL; i++) found = without_own_gradient(program, node->children[i]);
  return found;
}

static bool is_ignored(const struct job *job, const struct weight_node *node) {
  bool ignored = false;
  for (int i = 0; i < job->parallelism.n_ignored && node->parameter != NULL; i++)
    ignored |= name_matches(job->parallelism.ignored[i].name, node->path);
  for (int i = 0; i < node->n_children && !ignored; i++) ignored = is_ignored(job, node->children[i]);
  return ignored;
}

static void add_candidates(struct layer_search *search, struct weight_node *node);

/* Where the map has a layer, or the first thing in it that is elsewhere; NULL: all is in the memory of the device. */
static const struct place *elsewhere(const struct program *program, const struct weight_node *node) {
  const struct place *place = NULL;
  if (node->parameter != NULL) {
    const struct weight *weight = &program->weights->items[node->weight];
    return node->parameter->passing || weight_stays(weight) ? NULL : device_map_elsewhere(program->map, weight->path);
  }
  for (int i = 0; i < node->n_children && place == NULL; i++) place = elsewhere(program, node->children[i]);
  return place;
}

/* The first element of an array that comes from elsewhere; their number where none does. */
static int first_streamed(const struct program *program, const struct weight_array *array) {
  int first = 0;
  while (first < array->count && elsewhere(program, array->elements[first]) == NULL) first++;
  return first;
}

/* Arrays within arrays stay as they are. */
static void add_array(struct layer_search *search, const struct weight_array *array) {
  const struct job *job = search->program->job;
  const bool streams = search->program->streams;
  bool candidate = elements_of(array->elements[0]) >= job->parallelism.least_params, ignored = false;
  if (streams) candidate = first_streamed(search->program, array) < array->count;
  for (int i = 0; i < array->count && !streams; i++) {
    const struct weight *obstacle = candidate ? without_own_gradient(search->program, array->elements[i]) : NULL;
    if (search->obstacle == NULL) search->obstacle = obstacle;
    candidate = candidate && obstacle == NULL;
    ignored |= is_ignored(job, array->elements[i]);
  }
  for (int i = 0; i < array->count && !ignored; i++) {
    struct uses uses = {.element = array->elements[i]};
    if (candidate)
      ARENA_PUSH(search->program->arena, *search, uses);
    else
      add_candidates(search, array->elements[i]);
  }
}

static void add_candidates(struct layer_search *search, struct weight_node *node) {
  for (int i = 0; i < node->n_children; i++) {
    struct weight_node *child = node->children[i];
    if (child->array == NULL)
      add_candidates(search, child);
    else if (child == child->array->elements[0])
      add_array(search, child->array);
  }
}

/* The candidate that a path leads to, or into; -1: none. */
static int candidate_at(const struct layer_search *search, const char *path) {
  for (int i = 0; i < search->count; i++) {
    size_t length = strlen(search->items[i].element->path);
    if (strncmp(path, search->items[i].element->path, length) == 0 && (path[length] == '.' || path[length] == '\0'))
      return i;
  }
  return -1;
}

enum { TOO_OFTEN = 1000 };

/* Whether so many elements are neighbours of those of their array that were used before: all of these have a slot each.
 */
static bool is_next(const struct layer_search *search, int first, int count) {
  int before = search->newest;
  if (before < 0 || search->items[before].element->array != search->items[first].element->array) return true;
  return first == before + search->together || first + count == before;
}

/* Whether a function's loops may be layers: the job names it, or none. */
static bool is_wrapped(const struct job *job, const struct region *region) {
  bool wrapped = job->parallelism.n_wrapped == 0;
  for (int i = 0; i < job->parallelism.n_wrapped; i++)
    wrapped |= strcmp(job->parallelism.wrapped[i].name, region->function) == 0;
  return wrapped;
}

/* What an iteration of a call uses: one element, or, of a group of layers, elements that follow each other. How many;
 * 0: none. */
static int note_uses(struct layer_search *search, const struct region *callee, const char *const *scopes) {
  int first = -1, found = 0;
  bool fits = search->program->streams || is_wrapped(search->program->job, callee);
  for (int s = 0; s < callee->n_scopes; s++) {
    const int at = candidate_at(search, scopes[s]);
    if (at < 0) continue;
    if (found == 0) first = at;
    fits = fits && at == first + found && strcmp(scopes[s], search->items[at].element->path) == 0 &&
           search->items[at].element->array == search->items[first].element->array;
    found++;
  }
  fits = fits && found > 0 && (found == 1 || (callee->group && !search->program->streams)) &&
         is_next(search, first, found);
  for (int s = 0; s < callee->n_scopes; s++) {
    const int at = candidate_at(search, scopes[s]);
    if (at < 0) continue;
    search->items[at].times[search->run] += fits ? 1 : TOO_OFTEN;
    search->items[at].begins[search->run] = first;
  }
  if (found > 0) search->newest = first;
  if (found > 0) search->together = found;
  return found;
}

static void visit_uses(struct layer_search *search, const struct region *region, const char *const *prefixes) {
  struct arena *arena = search->program->arena;
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    int at = candidate_at(search, weight_path(arena, prefixes[p->scope], p->path));
    if (at >= 0) search->items[at].times[search->run] += TOO_OFTEN;
  }
  for (int i = 0; i < region->nodes.count; i++) {
    const struct call *call = region->nodes.items[i]->call;
    for (int k = 0; call != NULL && k < call->count; k++) {
      int iteration = call->forward != NULL ? call->count - 1 - k : k;
      const char *const *inner = weight_scopes(arena, call, iteration, prefixes);
      if (note_uses(search, call->callee, inner) == 0) visit_uses(search, call->callee, inner);
    }
  }
}

static bool is_used_once(const struct layer_search *search, const struct weight_array *array) {
  const bool evaluated = search->program->entry.second_region != NULL, streams = search->program->streams;
  const bool trains = search->program->kind == PROGRAM_TRAIN;
  for (int i = 0; i < search->count; i++) {
    const struct uses *uses = &search->items[i];
    if (uses->element->array != array) continue;
    if (uses->times[0] != 1 || uses->times[1] > trains || uses->times[2] != evaluated) return false;
    if (!streams && (uses->times[1] == 0 || uses->begins[0] != uses->begins[1])) return false;
  }
  return true;
}

/* To the array whose element the path names. */
static void give_slots(struct weight_tree *tree, const char *path, int slots) {
  struct weight_array *array = weight_node_at(tree->root, path)->array;
  array->slots = array->count < slots ? array->count : slots;
}

/* Gradients that begin at zero in slots are those of the first layers there; others have the same memory. */
static void forget_zeros(struct program *program, const struct weight_node *node) {
  if (node->parameter != NULL) weight_named(program->weights, node->path)->zero = false;
  for (int i = 0; i < node->n_children; i++) forget_zeros(program, node->children[i]);
}

/* Adds the units of an array whose uses these are; returns the most layers of one. */
static int add_units(struct program *program, const struct uses *uses, int count, int first) {
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
  if (weights_are_split(program)) give_slots(program->weights, array->elements[0]->path, slots);
  if (gradients_are_split(program)) give_slots(program->gradients, array->elements[0]->path, slots);
  for (int i = slots; i < array->count && gradients_are_split(program); i++) forget_zeros(program, array->elements[i]);
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

static struct layer_search searched(struct program *program) {
  static const char *const root[] = {""};
  const struct region *const runs[RUNS] = {
      program->graph->entry, graph_backward_of(program->graph, program->graph->entry), program->entry.second_region};
  struct layer_search search = {.program = program};
  add_candidates(&search, program->weights->root);
  for (search.run = 0; search.run < RUNS; search.run++) {
    search.newest = -1;
    if (runs[search.run] != NULL) visit_uses(&search, runs[search.run], root);
  }
  return search;
}

/* Whether this candidate is the first element of an array of layers. */
static bool begins_layers(const struct layer_search *search, int at) {
  const struct weight_array *array = search->items[at].element->array;
  return search->items[at].element == array->elements[0] && is_used_once(search, array);
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
  const struct layer_search search = searched(program);
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
  const struct layer_search search = searched(program);
  for (int i = 0; i < search.count; i++)
    if (begins_layers(&search, i)) fold_array(program, &search, i);
  weights_fold(program->weights);
  weights_fold(program->gradients);
  if (program->ranks.fsdp_units.count > 0) return true;
  refuse_layers(program, search.obstacle, diags);
  return false;
}

/* The layers from element `first` of an array on take turns in two slots. */
static void give_turns(struct weight_array *array, int first) {
  array->resident = first;
  array->slots = array->count - first < FSDP_SLOTS ? array->count - first : FSDP_SLOTS;
}

/* Units of those that come from a disk, or from the host. */
static void add_streamed(struct program *program, const struct weight_array *array, bool on_disk) {
  for (int i = first_streamed(program, array); i < array->count; i++) {
    const struct place *place = elsewhere(program, array->elements[i]);
    const char **path = arena_alloc(program->arena, sizeof *path);
    *path = array->elements[i]->path;
    struct fsdp_unit unit = {.paths = path, .layers = 1, .on_disk = place != NULL && place->is_disk};
    if (unit.on_disk == on_disk) ARENA_PUSH(program->arena, program->ranks.fsdp_units, unit);
  }
}

/* Weights in memory are where they are, others after them. */
static void place_streamed(struct program *program) {
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

static const char *place_text(struct arena *arena, const struct place *place) {
  if (place == NULL) return "in the memory of the device";
  return place->is_disk ? "on the disk" : arena_printf(arena, "in the memory '%s'", place->name);
}

/* Whether the model assigns to a parameter. */
static bool is_assigned(const struct parameter *parameter) {
  const struct region *region = parameter->value->region;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int o = 0; o < node->n_outputs && op_assigns(node->kind); o++) {
      const int from = node->kind->memory.assigns[op_described(node->kind, o)];
      if (from > 0 && node->inputs[from - 1] == parameter->value) return true;
    }
  }
  return false;
}

/* Why a weight cannot be where the map has it: only whole layers stream, the last ones of their loop, but for what a
 * trainer changes of them; NULL: it can. */
static const char *why_misplaced(const struct program *program, const struct weight *weight) {
  const int unit = fsdp_unit_of(program, weight);
  const struct place *place = device_map_elsewhere(program->map, weight->path);
  if (weight_stays(weight))
    return place != NULL && !is_adapter(weight->path) ? "is trained, so that it stays in memory" : NULL;
  if (unit >= 0 && is_assigned(weight->parameter)) return "is changed by the run, so that it stays in memory";
  if (unit < 0) return place != NULL ? "is of no layer that can come from there" : NULL;
  const char *path = program->ranks.fsdp_units.items[unit].paths[0];
  const struct place *of_layer = elsewhere(program, weight_node_at(program->weights->root, path));
  if (of_layer == NULL) return "a layer before its own is not";
  return place == of_layer ? NULL
                           : arena_printf(program->arena, "its layer is %s", place_text(program->arena, of_layer));
}

/* Whether what is elsewhere is layers that stream, and all of each. */
static bool check_streamed(const struct program *program, struct diagnostics *diags) {
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const char *why = weight->parameter->passing ? NULL : why_misplaced(program, weight);
    if (why == NULL) continue;
    const struct place *place = device_map_elsewhere(program->map, weight->path);
    diag_error(diags, job_where(program->job, "memory.device_map"), "'%s' is %s, and %s", weight->path,
               place_text(program->arena, place), why);
    diag_help(diags,
              "the last layers of a loop can be there, whole, whose parameters are those of one call each: "
              "memory.device_map: {\"PATTERN\": %s, \"*\": %s}",
              place != NULL ? place->name : "disk", program->target->is_host ? "cpu" : "gpu");
    return false;
  }
  return true;
}

bool plan_streamed_layers(struct program *program, struct diagnostics *diags) {
  if (!program->streams) return true;
  const struct layer_search search = searched(program);
  for (int i = 0; i < 2 * search.count; i++) { /* those of the host come first */
    struct weight_array *array = search.items[i % search.count].element->array;
    if (!begins_layers(&search, i % search.count)) continue;
    give_turns(array, first_streamed(program, array));
    add_streamed(program, array, i >= search.count);
  }
  if (!check_streamed(program, diags)) return false;
  weights_fold(program->weights);
  place_streamed(program);
  return true;
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
