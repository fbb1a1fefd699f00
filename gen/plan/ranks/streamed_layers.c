#include "gen/plan/ranks/streamed_layers.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/memory/weights.h"
#include "gen/plan/ranks/fsdp_layers.h"
#include "gen/plan/ranks/layer_search.h"
#include "gen/program/adapters.h"
#include "gen/program/storage.h"
#include "gen/program/target.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

/* The layers from element `first` of an array on take turns in two slots. */
static void give_turns(struct weight_array *array, int first) {
  array->resident = first;
  array->slots = array->count - first < FSDP_SLOTS ? array->count - first : FSDP_SLOTS;
}

/* Units of those that come from a disk, or from the host. */
static void add_streamed(struct program *program, const struct weight_array *array, bool on_disk) {
  for (int i = first_streamed(program, array); i < array->count; i++) {
    const struct place *place = place_elsewhere(program, array->elements[i]);
    const char **path = arena_alloc(program->arena, sizeof *path);
    *path = array->elements[i]->path;
    struct fsdp_unit unit = {.paths = path, .layers = 1, .on_disk = place != NULL && place->is_disk};
    if (unit.on_disk == on_disk) ARENA_PUSH(program->arena, program->ranks.fsdp_units, unit);
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
  const struct place *of_layer = place_elsewhere(program, weight_node_at(program->weights->root, path));
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

/* Adds the units of all layers that come from a disk, or from the host. */
static void add_all_streamed(struct program *program, const struct layer_search *search, bool on_disk) {
  for (int i = 0; i < search->count; i++)
    if (begins_layers(search, i)) add_streamed(program, search->items[i].element->array, on_disk);
}

bool plan_streamed_layers(struct program *program, struct diagnostics *diags) {
  if (!program->streams) return true;
  const struct layer_search search = search_layers(program);
  for (int i = 0; i < search.count; i++) {
    struct weight_array *array = search.items[i].element->array;
    if (begins_layers(&search, i)) give_turns(array, first_streamed(program, array));
  }
  add_all_streamed(program, &search, false);
  add_all_streamed(program, &search, true);
  if (!check_streamed(program, diags)) return false;
  weights_fold(program->weights);
  place_units(program);
  return true;
}
