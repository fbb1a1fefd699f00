/* Functions as templates see them: parameters, and statements whose arguments are views of the arena. */
#include <string.h>

#include "gen/base/path.h"
#include "gen/emit/values.h"
#include "gen/ir/op.h"
#include "gen/program/optimizers.h"
#include "gen/program/sending.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

/* The pointer to a function's parameters (or gradients) below one of its scopes. */
static const char *holder_name(struct arena *arena, const char *base, int scope) {
  return scope == 0 ? base : arena_printf(arena, "%s_%d", base, scope + 1);
}

/* ---- Parameters of functions ---- */

/* kind: "weights", "gradients", "saved", "aliased", "scratch" (structures), "rows" (of the
 * optimizer's table), "input", "output" (arrays), "stream", "pace" (all that an update needs of the step). */
static void add_parameter(struct arena *arena, struct jinja_value list, const char *kind, const char *name,
                          const char *type, const char *extent) {
  struct jinja_value value = jinja_map(arena);
  set_text(arena, value, "kind", kind);
  set_text(arena, value, "name", name);
  set_text(arena, value, "type", type);
  set_text(arena, value, "extent", extent);
  jinja_push(arena, list, value);
}

static const struct function *saving_function(const struct function *function) {
  return function->forward != NULL ? function->forward : function;
}

static const char *result_name(const struct function *function, int index) {
  for (int i = 0; i < function->storages.count; i++) {
    const struct storage *storage = function->storages.items[i];
    if (storage->kind == STORAGE_RESULT && storage->index == index) return storage->name;
  }
  return "";
}

/* Whether a function gets what an update needs of the step; a device may keep that itself. */
static bool takes_pace(const struct program *program, const struct function *function) {
  return function->updates && program->target->memory.progress_bytes == 0;
}

static struct jinja_value parameters_value(const struct program *program, const struct function *function) {
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
  if (saving_function(function)->saved_bytes > 0)
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
  if (takes_pace(program, function)) add_parameter(arena, list, "pace", "", "", "");
  return list;
}

/* ---- Arguments ---- */

/* An index first + step * i, modulo something when that is not 0. */
static struct jinja_value index_value(struct arena *arena, int64_t first, int64_t step, int64_t modulo) {
  struct jinja_value value = jinja_map(arena);
  set_int(arena, value, "first", first);
  set_int(arena, value, "step", step);
  set_int(arena, value, "modulo", modulo);
  return value;
}

/* An argument: holder->member[index].member + offset, or the address of such a member. */
static struct jinja_value argument_value(struct arena *arena, const char *holder, bool address, int64_t offset) {
  struct jinja_value value = jinja_map(arena);
  set_text(arena, value, "holder", holder);
  set_bool(arena, value, "address", address);
  set_int(arena, value, "offset", offset);
  jinja_set(arena, value, "parts", jinja_list(arena));
  return value;
}

static struct jinja_value add_part(struct arena *arena, struct jinja_value argument, const char *member) {
  struct jinja_value part = jinja_map(arena);
  set_text(arena, part, "member", member);
  set_bool(arena, part, "indexed", false);
  jinja_push(arena, jinja_get(argument, "parts"), part);
  return part;
}

static void set_index(struct arena *arena, struct jinja_value part, struct jinja_value index) {
  set_bool(arena, part, "indexed", true);
  jinja_set(arena, part, "index", index);
}

/* A member of what a function saves, of its scratch, or of what lies in memory of gradients. */
static struct jinja_value memory_argument(struct arena *arena, const struct storage *storage, bool address,
                                          struct jinja_value *part) {
  const char *own = storage->kind == STORAGE_SAVED ? "saved" : "scratch";
  struct jinja_value argument = argument_value(arena, storage->alias != NULL ? "aliased" : own, address, 0);
  *part = add_part(arena, argument, storage->alias != NULL ? storage->alias->name : storage->name);
  return argument;
}

/* What is reached from a scope pointer: a parameter's array, or the address of a structure. */
static struct jinja_value weights_argument(const struct program *program, const struct region *region, const char *base,
                                           int scope, const char *path, const char *next, bool address) {
  struct arena *arena = program->arena;
  struct access_part parts[8];
  const struct weight_tree *tree = strcmp(base, "gradients") == 0 ? program->gradients : program->weights;
  int count = weight_access(tree, region, scope, path, next, parts);
  struct jinja_value argument = argument_value(arena, holder_name(arena, base, scope), address && count > 0, 0);
  for (int i = 0; i < count; i++) {
    struct jinja_value part = add_part(arena, argument, parts[i].member);
    int64_t first = parts[i].modulo > 0 ? parts[i].first % parts[i].modulo : parts[i].first;
    if (parts[i].indexed) set_index(arena, part, index_value(arena, first, parts[i].step, parts[i].modulo));
  }
  return argument;
}

/* A row of the optimizer's table, from that of a scope's first parameter on: holder + first + step * i. */
static struct jinja_value row_value(const struct program *program, const struct region *region, int scope,
                                    const char *path, const char *next) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  int64_t first = weight_row(program->weights, region, scope, path);
  set_text(arena, value, "rows", holder_name(arena, "tensors", scope));
  jinja_set(arena, value, "index",
            index_value(arena, first, next != NULL ? weight_row(program->weights, region, scope, next) - first : 0, 0));
  return value;
}

static const struct parameter *parameter_of(const struct function *function, int index) {
  const struct region *region = function->region->forward != NULL ? function->region->forward : function->region;
  return &region->parameters.items[index];
}

static struct jinja_value operand_argument(const struct program *program, const struct function *function,
                                           const struct view *view) {
  struct arena *arena = program->arena;
  const struct storage *storage = storage_root(view->storage);
  struct jinja_value argument;
  if (storage->kind == STORAGE_WEIGHT || storage->kind == STORAGE_GRADIENT) {
    const struct parameter *p = parameter_of(function, storage->index);
    const char *weights = dtype_is_bits16(storage->dtype) ? bits16_weights(program) : "weights";
    argument = weights_argument(program, function->region, storage->kind == STORAGE_WEIGHT ? weights : "gradients",
                                p->scope, p->path, NULL, false);
  } else if (storage->kind == STORAGE_INPUT || storage->kind == STORAGE_RESULT) {
    argument = argument_value(arena, storage->name, false, 0);
  } else {
    struct jinja_value part;
    argument = memory_argument(arena, storage, false, &part);
    if (storage->copies > 1) {
      set_index(arena, part, index_value(arena, view->offset / storage->count, 0, 0));
      set_int(arena, argument, "offset", view->offset % storage->count);
      return argument;
    }
  }
  set_int(arena, argument, "offset", view->offset);
  return argument;
}

/* The copy of a row that an iteration uses: i + ahead. A row of two is used in turn. */
static struct jinja_value iteration_argument(struct arena *arena, const struct view *view, int ahead) {
  const struct storage *row = view->storage;
  struct jinja_value part, argument = memory_argument(arena, row, false, &part);
  set_index(arena, part, index_value(arena, ahead, 1, row->copies == 2 ? 2 : 0));
  return argument;
}

static void push_scopes(const struct program *program, const struct function *function, const struct step *step,
                        const char *base, const bool *used, struct jinja_value list) {
  const struct call *call = step->node->call;
  for (int i = 0; i < call->callee->n_scopes; i++) {
    if (!used[i]) continue;
    const struct scope *scope = call->scopes[i * call->count];
    const char *next = call->count > 1 ? call->scopes[i * call->count + 1]->path : NULL;
    jinja_push(program->arena, list,
               weights_argument(program, function->region, base, scope->formal, scope->path, next, true));
  }
}

static void push_rows(const struct program *program, const struct function *function, const struct step *step,
                      struct jinja_value list) {
  const struct call *call = step->node->call;
  for (int i = 0; i < call->callee->n_scopes; i++) {
    if (!step->callee->uses_rows[i]) continue;
    const struct scope *scope = call->scopes[i * call->count];
    const char *next = call->count > 1 ? call->scopes[i * call->count + 1]->path : NULL;
    jinja_push(program->arena, list, row_value(program, function->region, scope->formal, scope->path, next));
  }
}

static void push_memory(const struct program *program, const struct function *function, const struct step *step,
                        struct jinja_value list) {
  struct arena *arena = program->arena;
  const struct call *call = step->node->call;
  if (saving_function(step->callee)->saved_bytes > 0) {
    const struct node *forward = call->forward != NULL ? call->forward : step->node;
    const struct storage *frame = frame_of(function, forward);
    struct jinja_value part, saved = memory_argument(arena, frame, true, &part);
    if (call->count > 1) set_index(arena, part, index_value(arena, 0, 1, 0));
    jinja_push(arena, list, saved);
  }
  if (saving_function(step->callee)->aliased) jinja_push(arena, list, argument_value(arena, "aliased", false, 0));
  if (step->callee->scratch_bytes > 0) {
    struct jinja_value scratch = argument_value(arena, "scratch", true, 0);
    add_part(arena, scratch, step->callee->name);
    jinja_push(arena, list, scratch);
  }
}

/* Carried values move from copy i to copy i + 1; on the way back from i + 1 to i. */
static void push_operands(const struct program *program, const struct function *function, const struct step *step,
                          struct jinja_value list) {
  struct arena *arena = program->arena;
  const struct call *call = step->node->call;
  bool back = call->forward != NULL;
  for (int i = 0; i < call->callee->results.count; i++)
    if (takes_result(step->callee, i))
      jinja_push(arena, list,
                 call->count > 1 ? iteration_argument(arena, &step->outputs[i], back ? 0 : 1)
                                 : operand_argument(program, function, &step->outputs[i]));
  for (int i = 0; i < call->callee->inputs.count; i++) {
    if (!step->callee->uses_inputs[i]) continue;
    bool carried = call->count > 1 && call->carry[i] >= 0, stacked = call->stacked != NULL && call->stacked[i];
    if (carried)
      jinja_push(arena, list, iteration_argument(arena, &step->inputs[i], back ? 1 : 0));
    else if (stacked)
      jinja_push(arena, list, iteration_argument(arena, &step->inputs[i], stacked_copy(&step->inputs[i], 0)));
    else
      jinja_push(arena, list, operand_argument(program, function, &step->inputs[i]));
  }
}

/* The random stream of a call: a new one for each iteration, or that of a group's first iteration. */
static void set_stream(struct arena *arena, struct jinja_value value, const struct call *call) {
  set_text(arena, value, "stream", call->callee->group ? "first" : "new");
  set_int(arena, value, "call_number", call->number);
  jinja_set(arena, value, "iteration", index_value(arena, call->first, call->count > 1 ? call->step : 0, 0));
}

static struct jinja_value call_value(const struct program *program, const struct function *function,
                                     const struct step *step) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena), arguments = jinja_list(arena);
  const struct call *call = step->node->call;
  push_scopes(program, function, step, "weights", step->callee->uses_weights, arguments);
  push_scopes(program, function, step, bits16_weights(program), step->callee->uses_bits16_weights, arguments);
  push_scopes(program, function, step, "gradients", step->callee->uses_gradients, arguments);
  push_rows(program, function, step, arguments);
  push_memory(program, function, step, arguments);
  push_operands(program, function, step, arguments);
  set_text(arena, value, "callee", step->callee->name);
  set_text(arena, value, "part", "");
  set_bool(arena, value, "steps", false);
  jinja_set(arena, value, "arguments", arguments);
  set_int(arena, value, "count", call->count);
  set_bool(arena, value, "reverse", call->forward != NULL);
  set_bool(arena, value, "random", step->callee->random);
  set_bool(arena, value, "updates", takes_pace(program, step->callee));
  set_stream(arena, value, call);
  return value;
}

static struct jinja_value kernel_call_value(const struct program *program, const struct function *function,
                                            const struct step *step) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena), arguments = jinja_list(arena);
  bool steps = step->node->kind->kernel.updates;
  if (steps) {
    const struct parameter *p = parameter_of(function, step->outputs[0].storage->index);
    jinja_set(arena, value, "row", row_value(program, function->region, p->scope, p->path, NULL));
  }
  set_bool(arena, value, "steps", steps);
  for (int i = 0; i < step->node->n_outputs && !steps; i++)
    jinja_push(arena, arguments, operand_argument(program, function, &step->outputs[i]));
  for (int i = 0; i < step->node->n_inputs; i++)
    jinja_push(arena, arguments, operand_argument(program, function, &step->inputs[i]));
  set_text(arena, value, "callee", step->kernel->name);
  set_text(arena, value, "part", is_profiled(program) ? step->kernel->name : "");
  jinja_set(arena, value, "arguments", arguments);
  set_int(arena, value, "count", 1);
  set_bool(arena, value, "reverse", false);
  set_bool(arena, value, "random", step->node->kind->kernel.random);
  set_bool(arena, value, "updates", false);
  set_text(arena, value, "stream", "same");
  return value;
}

/* Whose a function is. */
static void set_heading(struct arena *arena, struct jinja_value value, const struct function *function) {
  set_comment(arena, value, "model_function", function->region->function);
  set_comment(arena, value, "file", name_in_folder(function->region->where.file));
  set_int(arena, value, "line", function->region->where.line);
  set_bool(arena, value, "backward", function->forward != NULL);
  set_bool(arena, value, "deferred", is_deferred(function));
  set_bool(arena, value, "defers", function->deferred != NULL);
  set_origin(arena, value, function->region->where);
}

/* ---- Stages of a pipeline ---- */

static bool stage_draws(const struct function *function, int stage) {
  for (int i = 0; i < function->n_steps; i++) {
    const struct step *step = &function->steps[i];
    if ((step->stages >> stage & 1) == 0) continue;
    if (step->callee == NULL   ? step->node->kind->kernel.random
        : step->callee->staged ? stage_draws(step->callee, stage)
                               : step->callee->random)
      return true;
  }
  return false;
}

/* What a function is called with the statements of one stage alone. */
static const char *stage_name(struct arena *arena, const struct function *function, int stage) {
  return arena_printf(arena, "stage_%d_%s", stage, function->name);
}

/* A value that comes from another stage or goes to one. */
static struct jinja_value crossing_value(const struct program *program, const struct crossing *crossing, bool sent) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena), arguments = jinja_list(arena);
  const struct storage *storage = crossing->storage;
  const struct view view = {.storage = (struct storage *)storage, .offset = crossing->first};
  jinja_push(arena, arguments, operand_argument(program, crossing->function, &view));
  const struct pipeline *pipeline = &program->ranks.pipeline;
  bool forwards = crossing->from < crossing->to, starts = pipeline->schedule.starts;
  const char *receives = starts ? "accel_take" : "accel_receive";
  set_text(arena, value, "crosses", !sent ? receives : forwards || starts ? "accel_start_send" : "accel_send");
  set_int(arena, value, "peer", (sent ? crossing->to : crossing->from) % pipeline->ranks);
  set_text(arena, value, "outgoing", sent && crossing->outgoing != NULL ? crossing->outgoing : "");
  set_int(arena, value, "elements", crossing->count);
  set_text(arena, value, "type", element_type(storage->dtype));
  jinja_set(arena, value, "arguments", arguments);
  set_bool(arena, value, "random", false);
  return value;
}

static void push_crossings(const struct program *program, const struct function *function, int stage, bool sent,
                           struct jinja_value list) {
  const struct crossing_list *crossings = &program->ranks.pipeline.crossings;
  for (int i = 0; i < crossings->count; i++) {
    const struct crossing *crossing = &crossings->items[i];
    if (crossing->function == function && (sent ? crossing->from : crossing->to) == stage)
      jinja_push(program->arena, list, crossing_value(program, crossing, sent));
  }
}

/* What the forward of a stage has sent, which its backward knows to be received once it has the gradients. */
static void push_arrived(const struct program *program, const struct function *function, int stage,
                         struct jinja_value list) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  for (int i = 0; i < pipeline->crossings.count && pipeline->schedule.starts; i++) {
    const struct crossing *crossing = &pipeline->crossings.items[i];
    if (function->forward == NULL || crossing->function != function->forward || crossing->from != stage) continue;
    if (crossing->outgoing != NULL) continue;
    struct jinja_value value = crossing_value(program, crossing, true);
    set_text(program->arena, value, "crosses", "accel_wait_send");
    jinja_push(program->arena, list, value);
  }
}

static struct jinja_value stage_statements(const struct program *program, const struct function *function, int stage);

static bool has_holder(struct jinja_value statements, const char *name) {
  for (int i = 0; i < jinja_count(statements); i++) {
    struct jinja_value arguments = jinja_get(jinja_at(statements, i), "arguments");
    for (int k = 0; k < jinja_count(arguments); k++)
      if (strcmp(jinja_text(jinja_get(jinja_at(arguments, k), "holder")), name) == 0) return true;
  }
  return false;
}

/* Whether the statements of a stage use parameter `index` of a function. */
static bool stage_takes(const struct program *program, const struct function *function, int stage, int index) {
  struct jinja_value parameter = jinja_at(parameters_value(program, function), index);
  struct jinja_value statements = stage_statements(program, function, stage);
  if (strcmp(jinja_text(jinja_get(parameter, "kind")), "stream") == 0) return stage_draws(function, stage);
  return has_holder(statements, jinja_text(jinja_get(parameter, "name")));
}

/* Of the parameters of a function, or of arguments for them, those that a stage's form of it has. */
static struct jinja_value stage_part(const struct program *program, const struct function *function, int stage,
                                     struct jinja_value list) {
  struct jinja_value kept = jinja_list(program->arena);
  for (int i = 0; i < jinja_count(list); i++)
    if (stage_takes(program, function, stage, i)) jinja_push(program->arena, kept, jinja_at(list, i));
  return kept;
}

static struct jinja_value stage_statement(const struct program *program, const struct function *function,
                                          const struct step *step, int stage) {
  struct arena *arena = program->arena;
  if (step->callee == NULL) return kernel_call_value(program, function, step);
  struct jinja_value value = call_value(program, function, step);
  if (!step->callee->staged) return value;
  set_text(arena, value, "callee", stage_name(arena, step->callee, stage));
  set_bool(arena, value, "random", stage_draws(step->callee, stage));
  jinja_set(arena, value, "arguments", stage_part(program, step->callee, stage, jinja_get(value, "arguments")));
  return value;
}

/* First what any stage makes for itself, then what comes, then the stage's own, then what goes; before a function of
 * which later stages have a part, too, since what that sends comes after. */
static struct jinja_value stage_statements(const struct program *program, const struct function *function, int stage) {
  struct jinja_value list = jinja_list(program->arena);
  bool received = false, sent = false;
  for (int i = 0; i < function->n_steps; i++) {
    const struct step *step = &function->steps[i];
    if ((step->stages >> stage & 1) == 0) continue;
    const bool divided = step->callee != NULL && step->callee->staged, own = divided || step->stage == stage;
    if (own && !received) {
      push_crossings(program, function, stage, false, list);
      push_arrived(program, function, stage, list);
    }
    received |= own;
    if (divided && step->stage != stage && !sent) {
      push_crossings(program, function, stage, true, list);
      sent = true;
    }
    struct jinja_value statement = stage_statement(program, function, step, stage);
    set_node_origin(program->arena, statement, step->node);
    jinja_push(program->arena, list, statement);
  }
  if (!sent) push_crossings(program, function, stage, true, list);
  return list;
}

static struct jinja_value stage_value(const struct program *program, const struct function *function, int stage) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  set_heading(arena, value, function);
  set_text(arena, value, "name", stage_name(arena, function, stage));
  set_bool(arena, value, "sends", false);
  set_int(arena, value, "stage", stage);
  jinja_set(arena, value, "parameters", stage_part(program, function, stage, parameters_value(program, function)));
  jinja_set(arena, value, "statements", stage_statements(program, function, stage));
  return value;
}

/* ---- All of them ---- */

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

static struct jinja_value arena_member(struct arena *arena, const char *member, const char *inner, bool address) {
  struct jinja_value argument = argument_value(arena, "arena", address, 0);
  add_part(arena, argument, member);
  if (inner != NULL) add_part(arena, argument, inner);
  return argument;
}

/* Which member of the arena's scratch an entry function has. */
static const char *scratch_member(const struct program *program, const struct function *function) {
  if (function == program->entry.second) return program->kind == PROGRAM_GENERATE ? "one" : "evaluation";
  if (is_deferred(function)) return "weight_gradients";
  return function->forward != NULL ? "backward" : "forward";
}

struct jinja_value entry_arguments_value(const struct program *program, const struct function *function,
                                         const char *weights) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  const struct region *region = function->region;
  if (function->uses_weights[0]) jinja_push(arena, list, arena_member(arena, weights, NULL, true));
  if (function->uses_bits16_weights[0])
    jinja_push(arena, list, arena_member(arena, bits16_weights(program), NULL, true));
  if (function->uses_gradients[0]) jinja_push(arena, list, arena_member(arena, "gradients", NULL, true));
  if (function->uses_rows[0]) jinja_push(arena, list, argument_value(arena, "updated", false, 0));
  if (saving_function(function)->saved_bytes > 0) jinja_push(arena, list, arena_member(arena, "saved", NULL, true));
  if (saving_function(function)->aliased) jinja_push(arena, list, arena_member(arena, "aliased", NULL, true));
  if (function->scratch_bytes > 0)
    jinja_push(arena, list, arena_member(arena, "scratch", scratch_member(program, function), true));
  bool first =
      function != program->entry.forward || !program->entry.loss_in_backward; /* of its results is the program's */
  for (int i = 0; i < region->results.count; i++)
    if (takes_result(function, i))
      jinja_push(arena, list,
                 arena_member(arena, i == 0 && first ? "result" : region->results.items[i]->name, NULL, false));
  for (int i = 0; i < region->inputs.count; i++)
    if (function->uses_inputs[i])
      jinja_push(arena, list, arena_member(arena, region->inputs.items[i]->name, NULL, false));
  return list;
}

const char *evaluation_weights(const struct program *program) {
  if (program->kind != PROGRAM_TRAIN) return "weights";
  if (program->job->training.ema.evaluate) return "averages";
  return job_optimizer(program->job)->averages ? "gradients" : "weights";
}

const struct function *evaluation_function(const struct program *program) {
  if (program->kind != PROGRAM_TRAIN) return NULL;
  if (program->entry.second != NULL) return program->entry.second;
  return strcmp(evaluation_weights(program), "weights") != 0 ? program->entry.forward : NULL;
}

/* Whether one of the arguments is a member of the arena. */
static bool has_argument(struct jinja_value arguments, const char *member) {
  for (int i = 0; i < jinja_count(arguments); i++) {
    struct jinja_value part = jinja_at(jinja_get(jinja_at(arguments, i), "parts"), 0);
    if (strcmp(jinja_text(jinja_get(part, "member")), member) == 0) return true;
  }
  return false;
}

/* The call of an entry function by a stage: {name, arguments, samples: whether it has some, random}. A micro-batch has
 * samples and saved values of its own. */
static struct jinja_value stage_call(const struct program *program, const struct function *function, int stage,
                                     const char *weights) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena), all = entry_arguments_value(program, function, weights);
  const struct value_list *inputs = &program->graph->entry->inputs; /* the backward takes its seed, too */
  const struct pipeline *pipeline = &program->ranks.pipeline;
  /* Samples are in the rooms of a rank's first stage, saved values in those of the stage at hand. */
  const bool chunked = pipeline->stages > pipeline->ranks && function != program->entry.second;
  for (int i = 0; i < jinja_count(all) && program->kind == PROGRAM_TRAIN; i++) {
    struct jinja_value part = jinja_at(jinja_get(jinja_at(all, i), "parts"), 0);
    const char *member = jinja_text(jinja_get(part, "member"));
    bool saved = strcmp(member, "saved") == 0, sample = false;
    for (int k = 0; k < inputs->count; k++) sample |= strcmp(member, inputs->items[k]->name) == 0;
    if (!saved && !sample) continue;
    struct jinja_value index = index_value(arena, 0, 1, 0);
    if (sample && chunked) set_text(arena, index, "variable", "samples");
    set_index(arena, part, index);
  }
  set_text(arena, value, "name", stage_name(arena, function, stage));
  struct jinja_value own = stage_part(program, function, stage, all);
  bool samples = false;
  for (int k = 0; k < inputs->count && chunked; k++) samples |= has_argument(own, inputs->items[k]->name);
  jinja_set(arena, value, "arguments", own);
  set_bool(arena, value, "samples", samples);
  set_bool(arena, value, "random", stage_draws(function, stage));
  return value;
}

struct jinja_value stages_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int k = 0; k < program->ranks.pipeline.stages; k++) {
    struct jinja_value value = jinja_map(arena);
    jinja_set(arena, value, "forward", stage_call(program, program->entry.forward, k, "weights"));
    if (program->entry.backward != NULL)
      jinja_set(arena, value, "backward", stage_call(program, program->entry.backward, k, "weights"));
    if (program->entry.deferred != NULL)
      jinja_set(arena, value, "deferred", stage_call(program, program->entry.deferred, k, "weights"));
    const struct function *second =
        program->kind == PROGRAM_TRAIN ? evaluation_function(program) : program->entry.second;
    if (second != NULL)
      jinja_set(arena, value, program->kind == PROGRAM_TRAIN ? "evaluation" : scratch_member(program, second),
                stage_call(program, second, k, evaluation_weights(program)));
    jinja_push(arena, list, value);
  }
  return list;
}
