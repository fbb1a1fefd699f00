/* Functions as templates see them: parameters, and statements whose arguments are views of the arena. */
#include "gen/emit/functions.h"

#include "gen/base/path.h"
#include "gen/emit/arguments.h"
#include "gen/program/sending.h"
#include "gen/program/sharding.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

/* kind: "weights", "gradients", "saved", "aliased", "scratch" (structures), "rows" (of the
 * optimizer's table), "input", "output" (arrays), "stream", "step_scalars" (all that an update needs of the step). */
static void add_parameter(struct arena *arena, struct jinja_value list, const char *kind, const char *name,
                          const char *type, const char *extent) {
  struct jinja_value value = jinja_map(arena);
  set_text(arena, value, "kind", kind);
  set_text(arena, value, "name", name);
  set_text(arena, value, "type", type);
  set_text(arena, value, "extent", extent);
  jinja_push(arena, list, value);
}

static const char *result_name(const struct function *function, int index) {
  for (int i = 0; i < function->storages.count; i++) {
    const struct storage *storage = function->storages.items[i];
    if (storage->kind == STORAGE_RESULT && storage->index == index) return storage->name;
  }
  return "";
}

struct jinja_value parameters_value(const struct program *program, const struct function *function) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  const struct region *region = function->region;
  for (int i = 0; i < region->n_scopes; i++)
    if (function->uses_weights[i])
      add_parameter(arena, list, function->writes_weights[i] ? "assigned" : "weights", holder_name(arena, "weights", i),
                    region_scope_type(program->weights, region, i)->name, "");
  for (int i = 0; i < region->n_scopes; i++)
    if (function->uses_bits16_weights[i])
      add_parameter(arena, list, "weights", holder_name(arena, bits16_weights(program), i),
                    bits16_struct(arena, program, region_scope_type(program->weights, region, i)), "");
  for (int i = 0; i < region->n_scopes; i++)
    if (function->uses_gradients[i])
      add_parameter(arena, list, "gradients", holder_name(arena, "gradients", i),
                    region_scope_type(program->gradients, region, i)->name, "");
  for (int i = 0; i < region->n_scopes; i++)
    if (function->uses_rows[i]) add_parameter(arena, list, "rows", holder_name(arena, "tensors", i), "", "");
  if (takes_saved(function))
    add_parameter(arena, list, "saved", "saved", saved_type(arena, saving_function(function)), "");
  if (saving_function(function)->aliased) add_parameter(arena, list, "aliased", "aliased", "", "");
  if (function->scratch_bytes > 0) add_parameter(arena, list, "scratch", "scratch", scratch_type(arena, function), "");
  for (int i = 0; i < region->results.count; i++)
    if (takes_result(function, i))
      add_parameter(arena, list, is_deferred(function) ? "input" : "output", result_name(function, i),
                    element_type(region->results.items[i]->dtype), extent_text(arena, region->results.items[i]->shape));
  for (int i = 0; i < region->inputs.count; i++)
    if (function->uses_inputs[i])
      add_parameter(arena, list, "input", region->inputs.items[i]->name, element_type(region->inputs.items[i]->dtype),
                    extent_text(arena, region->inputs.items[i]->shape));
  if (function->random) add_parameter(arena, list, "stream", "stream", "", "");
  if (takes_step_scalars(program, function)) add_parameter(arena, list, "step_scalars", "", "", "");
  return list;
}

void set_heading(struct arena *arena, struct jinja_value value, const struct function *function) {
  set_comment(arena, value, "model_function", function->region->function);
  set_comment(arena, value, "file", name_in_folder(function->region->where.file));
  set_int(arena, value, "line", function->region->where.line);
  set_bool(arena, value, "backward", function->forward != NULL);
  set_bool(arena, value, "deferred", is_deferred(function));
  set_bool(arena, value, "defers", function->deferred != NULL);
  set_origin(arena, value, function->region->where);
}

/* sends: with the statements that send gradients on their way, which may be those of a function that it calls; last: as
 * a step's last micro-batch does. */
static struct jinja_value function_value(const struct program *program, const struct function *function, bool sends,
                                         bool last) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena), statements = jinja_list(arena);
  for (int i = 0; i < function->n_steps; i++) {
    const struct step *step = &function->steps[i];
    bool is_call = step->callee != NULL;
    struct jinja_value statement =
        is_call ? call_value(program, function, step) : kernel_call_value(program, function, step);
    set_node_origin(arena, statement, step->node);
    set_exchange(program, statement, step, sends, last);
    if (last && is_call && function_sends(step->callee))
      set_text(arena, statement, "callee", sending_name(program, step->callee));
    jinja_push(arena, statements, statement);
  }
  set_text(arena, value, "name", last ? sending_name(program, function) : function->name);
  set_bool(arena, value, "sends", sends);
  set_heading(arena, value, function);
  jinja_set(arena, value, "parameters", parameters_value(program, function));
  jinja_set(arena, value, "statements", statements);
  return value;
}

struct jinja_value functions_value(const struct program *program) {
  struct jinja_value list = jinja_list(program->arena);
  bool early = shard_sends_otherwise(program); /* micro-batches before the last one send, too */
  for (int i = 0; i < program->functions.count; i++) {
    const struct function *function = program->functions.items[i];
    for (int k = 0; function->staged && k < function->n_stages; k++)
      jinja_push(program->arena, list, stage_value(program, function, function->first_stage + k));
    if (function->staged) continue;
    bool called = function->n_steps > 0 || function->region->results.count > 0; /* see gen/plan/graph/prune.h */
    bool sends = function_sends(function);
    if (called && !(sends && program->ranks.sends_always))
      jinja_push(program->arena, list, function_value(program, function, sends && early, false));
    if (sends) jinja_push(program->arena, list, function_value(program, function, true, true));
  }
  return list;
}
