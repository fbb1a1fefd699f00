/* Statements of functions: calls of other functions, and of kernels. */
#include "gen/emit/arguments.h"
#include "gen/emit/functions.h"
#include "gen/ir/op.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

bool takes_step_scalars(const struct program *program, const struct function *function) {
  return function->updates && program->target->memory.progress_bytes == 0;
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
  if (takes_saved(step->callee)) {
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

struct jinja_value call_value(const struct program *program, const struct function *function, const struct step *step) {
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
  set_bool(arena, value, "updates", takes_step_scalars(program, step->callee));
  set_stream(arena, value, call);
  return value;
}

struct jinja_value kernel_call_value(const struct program *program, const struct function *function,
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
