#include "gen/plan/memory/place_modules.h"

#include <stdlib.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/plan/graph/recompute.h"
#include "gen/plan/memory/device_map.h"
#include "gen/program/match.h"
#include "gen/program/optimizers.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

struct placing {
  struct program *program;
  struct device_map *map;
  struct diagnostics *diags;
};

/* ---- Modules ---- */

/* What a run of the program makes itself, such as a cache, is no part of the model. */
static void add_modules(const struct placing *p, struct module *module, const struct weight_node *node) {
  for (int i = 0; i < node->n_children; i++) {
    const struct weight_node *child = node->children[i];
    const struct parameter *parameter = child->parameter;
    if (parameter != NULL && parameter->passing) continue;
    if (module->parent == NULL && strcmp(child->path, resident_scope(p->program)) == 0) {
      add_modules(p, module, child); /* of the layers that are there already */
      continue;
    }
    const enum module_kind kind = parameter == NULL ? MODULE : parameter->buffer ? MODULE_BUFFER : MODULE_PARAMETER;
    struct module *made = module_child(p->program->arena, module, child->name, kind);
    if (child->binder != NULL) made->type = child->binder->function;
    if (parameter != NULL)
      module_add_tensor(made, shape_count(parameter->shape) * dtype_size(parameter->dtype), NULL);
    else
      add_modules(p, made, child);
  }
}

struct type_list {
  const char **items;
  int count, capacity;
};

/* The functions of outermost layers: elements of arrays that a function takes. */
static void add_layer_types(const struct placing *p, const struct weight_node *node, struct type_list *types) {
  for (int i = 0; i < node->n_children; i++) {
    const struct weight_node *child = node->children[i];
    const bool is_layer = child->array != NULL && child->binder != NULL;
    bool known = false;
    for (int k = 0; k < types->count && is_layer; k++) known |= strcmp(types->items[k], child->binder->function) == 0;
    if (is_layer && !known) ARENA_PUSH(p->program->arena, *types, child->binder->function);
    if (!is_layer) add_layer_types(p, child, types);
  }
}

/* Whether a module of this type is at a module or in it. */
static bool has_type(const struct module *module, const char *type) {
  bool found = module->type != NULL && strcmp(module->type, type) == 0;
  for (int i = 0; i < module->n_children && !found; i++) found = has_type(module->children[i], type);
  return found;
}

static bool find_whole(const struct placing *p, struct whole_types *whole) {
  const struct job *job = p->program->job;
  struct type_list types = {0};
  if (job->memory.no_split == NULL) add_layer_types(p, p->program->weights->root, &types);
  for (int i = 0; i < job->memory.n_no_split; i++) {
    const struct named *named = &job->memory.no_split[i];
    if (!has_type(p->map->root, named->name)) {
      refuse_function(p->program, named, p->diags);
      return false;
    }
    ARENA_PUSH(p->program->arena, types, named->name);
  }
  *whole = (struct whole_types){types.items, types.count};
  return true;
}

/* ---- Places ---- */

static void add_place(const struct placing *p, const char *name, int64_t bytes, bool is_gpu, bool is_disk) {
  struct place_list *places = &p->map->places;
  const bool keeps_largest = !is_disk && (!is_gpu || places->count == 0);
  const int64_t reserve = p->program->job->memory.reserve;
  if (bytes != PLACE_ENDLESS) bytes = bytes > reserve ? bytes - reserve : 0;
  const bool is_own = p->program->target->is_host ? !is_gpu && !is_disk : is_gpu && places->count == 0;
  const struct place place = {name, bytes, keeps_largest, is_gpu, is_disk, is_own};
  ARENA_PUSH(p->program->arena, *places, place);
}

/* GPUs that patterns name in addition to those of limits. */
static int named_gpus(const struct job *job) {
  int count = 0;
  for (int i = 0; i < job->memory.n_places; i++) {
    const char *place = job->memory.places[i].place;
    const int number = strcmp(place, "gpu") == 0 ? 0 : place[0] >= '0' && place[0] <= '9' ? atoi(place) : -1;
    if (number >= count) count = number + 1;
  }
  return count;
}

static bool names_place(const struct job *job, const char *name) {
  bool found = false;
  for (int i = 0; i < job->memory.n_places; i++) found |= strcmp(job->memory.places[i].place, name) == 0;
  return found;
}

/* Memories that have a limit; the device's own, and what patterns name, without one. */
static void add_places(const struct placing *p) {
  const struct job *job = p->program->job;
  const bool is_host = p->program->target->is_host, grouped = job->devices.limits.n_gpus > 0 ||
                                                              job->devices.limits.cpu >= 0 ||
                                                              job->devices.limits.disk != NULL;
  const int64_t own = !grouped && job->devices.memory > 0 ? job->devices.memory : PLACE_ENDLESS;
  int gpus = named_gpus(job);
  if (gpus < job->devices.limits.n_gpus) gpus = job->devices.limits.n_gpus;
  if (gpus == 0 && !is_host) gpus = 1;
  for (int i = 0; i < gpus; i++)
    add_place(p, arena_printf(p->program->arena, "%d", i),
              i < job->devices.limits.n_gpus ? job->devices.limits.gpus[i]
              : i == 0 && !is_host           ? own
                                             : PLACE_ENDLESS,
              true, false);
  if (job->devices.limits.cpu >= 0)
    add_place(p, "cpu", job->devices.limits.cpu, false, false);
  else if (is_host || names_place(job, "cpu"))
    add_place(p, "cpu", is_host ? own : PLACE_ENDLESS, false, false);
  if (job->devices.limits.disk != NULL || names_place(job, "disk")) add_place(p, "disk", PLACE_ENDLESS, false, true);
}

/* ---- By patterns ---- */

static int place_named(const struct device_map *map, const char *name) {
  for (int i = 0; i < map->places.count; i++)
    if (strcmp(map->places.items[i].name, strcmp(name, "gpu") == 0 ? "0" : name) == 0) return i;
  return -1;
}

/* The first rule that matches a tensor, or a module that it is in; -1: none. */
static int rule_of(const struct job *job, const struct module *tensor) {
  for (int i = 0; i < job->memory.n_places; i++)
    for (const struct module *m = tensor; m != NULL; m = m->parent)
      if (name_matches(job->memory.places[i].match, m->name)) return i;
  return -1;
}

struct by_rules {
  const struct placing *placing;
  int64_t *used;
  bool *met; /* by rule */
};

static bool place_tensors(struct by_rules *by, const struct module *module) {
  const struct placing *p = by->placing;
  const struct job *job = p->program->job;
  bool good = true;
  for (int i = 0; i < module->n_children && good; i++) good = place_tensors(by, module->children[i]);
  if (module->kind == MODULE || !good) return good;
  const int rule = rule_of(job, module);
  if (rule < 0) {
    diag_error(p->diags, job_where(job, "memory.device_map"), "no pattern says where '%s' is", module->name);
    diag_help(p->diags, "add a last pattern for all others, such as \"*\": cpu");
    return false;
  }
  by->met[rule] = true;
  const int at = place_named(p->map, job->memory.places[rule].place);
  const struct place *place = &p->map->places.items[at];
  by->used[at] += module->bytes;
  if (!place->is_disk && by->used[at] > place->bytes && p->map->homeless == NULL) {
    p->map->homeless = module;
    p->map->lacking = by->used[at] - place->bytes;
  }
  ARENA_PUSH(p->program->arena, *p->map, ((struct mapped){module, at}));
  return true;
}

static void add_names(struct arena *arena, const struct module *module, struct name_list *names) {
  if (module->parent != NULL) ARENA_PUSH(arena, *names, module->name);
  for (int i = 0; i < module->n_children; i++) add_names(arena, module->children[i], names);
}

static bool map_by_rules(const struct placing *p) {
  const struct job *job = p->program->job;
  struct arena *arena = p->program->arena;
  struct by_rules by = {p, arena_alloc(arena, ((size_t)p->map->places.count + 1) * sizeof(int64_t)),
                        arena_alloc(arena, ((size_t)job->memory.n_places + 1) * sizeof(bool))};
  for (int i = 0; i < job->memory.n_places; i++)
    name_pattern_check(job->memory.places[i].match, job->memory.places[i].where, p->diags);
  if (p->diags->errors > 0 || !place_tensors(&by, p->map->root)) return false;
  struct name_list names = {0};
  add_names(arena, p->map->root, &names);
  for (int i = 0; i < job->memory.n_places; i++) {
    const struct place_rule *rule = &job->memory.places[i];
    bool matches = by.met[i];
    for (int k = 0; k < names.count && !matches; k++) matches = name_matches(rule->match, names.items[k]);
    if (!matches) {
      name_pattern_unmatched(arena, rule->match, &names, rule->where, p->diags);
      return false;
    }
  }
  return true;
}

/* ---- What can run ---- */

static struct location cause_of(const struct job *job) {
  return job_where(job, job->memory.maps ? "memory.device_map" : "devices.memory");
}

static bool refuse_homeless(const struct placing *p) {
  const struct device_map *map = p->map;
  struct arena *arena = p->program->arena;
  if (map->homeless == NULL) return true;
  diag_error(p->diags, cause_of(p->program->job), "no memory has space for '%s', which takes %s: %s lack (%lld bytes)",
             map->homeless->name, bytes_text(arena, map->homeless->bytes), bytes_text(arena, map->lacking),
             (long long)map->lacking);
  diag_help(p->diags, "raise a limit of devices.memory, or add disk: FOLDER to it");
  return false;
}

/* Why no layer comes to a trainer from the file of its weights; NULL: frozen ones can. */
static const char *why_trainer_does_not(const struct program *program) {
  const struct job *job = program->job;
  if (!program->target->is_host) return "layers come to trainers on processors alone";
  if (job->devices.ranks > 1) return "layers come to a trainer of one process alone";
  if (job->model.weights == NULL) return "layers come from the file of model.weights, which is not set";
  if (job_optimizer(job)->in_backward) return "lomo and adalomo have all weights in memory";
  if (job->training.ema.decay > 0) return "training.ema averages weights that are in memory";
  if (job->training.early_stopping.restore_best) return "training.early_stopping.restore_best takes all weights";
  if (job->memory.activation_checkpointing == CHECKPOINTING_EVERY)
    return "activation_checkpointing: every runs several layers again together, of which two slots have one each";
  return NULL;
}

/* Why layers cannot come to a program's device from a place; NULL: they can. */
static const char *why_not_streamed(const struct program *program, const struct place *place) {
  if (place->is_gpu || (program->target->is_host && !place->is_disk))
    return "a program computes in the memory of its device";
  if (program->kind == PROGRAM_TRAIN) return why_trainer_does_not(program);
  if (program->job->devices.ranks > 1 && !program->target->is_host)
    return "layers come from elsewhere to one GPU alone";
  if (place->is_disk && !program->target->is_host && !program->target->memory.reads_files)
    return "layers come to its GPUs from the host alone, as HIP's runtime of 5.2 does no work of the host in a stream";
  if (program->job->parallelism.axes[AXIS_PP] > 1) return "a stage of a pipeline has its layers in memory";
  return NULL;
}

bool may_stream(const struct program *program) {
  const struct job *job = program->job;
  if (program->kind != PROGRAM_TRAIN) return job->memory.maps;
  return job->memory.maps && program->target->is_host && job->devices.ranks == 1 &&
         (job->devices.limits.disk != NULL || names_place(job, "disk"));
}

/* What is in the memory of the device runs, and layers that stream to it. */
static bool check_runs(const struct placing *p) {
  for (int i = 0; i < p->map->count; i++) {
    const struct mapped *mapped = &p->map->items[i];
    const struct place *place = &p->map->places.items[mapped->place];
    if (place->is_own) continue;
    const char *why = why_not_streamed(p->program, place);
    if (why == NULL) {
      p->program->streams = true;
      continue;
    }
    diag_error(p->diags, cause_of(p->program->job), "'%s' is in the memory '%s': %s", mapped->module->name, place->name,
               why);
    diag_help(p->diags, "accel-gen plan --device-map shows the map; layers come to --program evaluate and --program "
                        "generate, on processors from a disk, on GPUs from the host too, and frozen ones to a trainer "
                        "on a processor; else raise the limit of the device");
    return false;
  }
  return true;
}

bool place_modules(struct program *program, bool shown, struct diagnostics *diags) {
  struct arena *arena = program->arena;
  struct placing placing = {program, arena_alloc(arena, sizeof(struct device_map)), diags};
  struct device_map *map = placing.map;
  struct whole_types whole;
  if (!shown && !program->job->memory.maps) return true;
  map->root = arena_alloc(arena, sizeof *map->root);
  map->root->name = "";
  add_modules(&placing, map->root, program->weights->root);
  if (!find_whole(&placing, &whole)) return false;
  add_places(&placing);
  if (program->job->memory.n_places > 0) {
    struct module_list all = {0};
    ARENA_PUSH(arena, all, map->root);
    map->largest = largest_layer(arena, &all, &whole, &map->layers);
    if (!map_by_rules(&placing)) return false;
  } else {
    balance_places(arena, map->root, &whole, program->job->memory.device_map, &map->places);
    find_device_map(arena, &whole, map);
  }
  shorten_device_map(arena, map);
  program->map = map;
  return refuse_homeless(&placing) && (shown || check_runs(&placing));
}
