#include "gen/plan/ranks/layer_search.h"

#include <string.h>

#include "gen/ir/region.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/match.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

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

const struct place *place_elsewhere(const struct program *program, const struct weight_node *node) {
  const struct place *place = NULL;
  if (node->parameter != NULL) {
    const struct weight *weight = &program->weights->items[node->weight];
    return node->parameter->passing || weight_stays(weight) ? NULL : device_map_elsewhere(program->map, weight->path);
  }
  for (int i = 0; i < node->n_children && place == NULL; i++) place = place_elsewhere(program, node->children[i]);
  return place;
}

int first_streamed(const struct program *program, const struct weight_array *array) {
  int first = 0;
  while (first < array->count && place_elsewhere(program, array->elements[first]) == NULL) first++;
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
    struct layer_uses uses = {.element = array->elements[i]};
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
    const struct layer_uses *uses = &search->items[i];
    if (uses->element->array != array) continue;
    if (uses->times[0] != 1 || uses->times[1] > trains || uses->times[2] != evaluated) return false;
    if (!streams && (uses->times[1] == 0 || uses->begins[0] != uses->begins[1])) return false;
  }
  return true;
}

struct layer_search search_layers(struct program *program) {
  static const char *const root[] = {""};
  const struct region *const runs[LAYER_RUNS] = {
      program->graph->entry, graph_backward_of(program->graph, program->graph->entry), program->entry.second_region};
  struct layer_search search = {.program = program};
  add_candidates(&search, program->weights->root);
  for (search.run = 0; search.run < LAYER_RUNS; search.run++) {
    search.newest = -1;
    if (runs[search.run] != NULL) visit_uses(&search, runs[search.run], root);
  }
  return search;
}

bool begins_layers(const struct layer_search *search, int at) {
  const struct weight_array *array = search->items[at].element->array;
  return search->items[at].element == array->elements[0] && is_used_once(search, array);
}
