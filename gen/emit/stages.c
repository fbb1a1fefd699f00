/* Functions and calls of one stage of a pipeline: of each function the statements and parameters that the stage has. */
#include <string.h>

#include "gen/emit/arguments.h"
#include "gen/emit/functions.h"
#include "gen/ir/op.h"
#include "gen/program/target.h"

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

/* A value that is received from another stage or sent to one. */
static struct jinja_value crossing_value(const struct program *program, const struct crossing *crossing, bool sent) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena), arguments = jinja_list(arena);
  const struct storage *storage = crossing->storage;
  const struct view sender = {.storage = (struct storage *)storage, .offset = crossing->first};
  const struct view view = !sent && crossing->into != NULL ? *crossing->into : sender;
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

static bool has_holder(struct jinja_value statements, const char *name) {
  for (int i = 0; i < jinja_count(statements); i++) {
    struct jinja_value arguments = jinja_get(jinja_at(statements, i), "arguments");
    for (int k = 0; k < jinja_count(arguments); k++)
      if (strcmp(jinja_text(jinja_get(jinja_at(arguments, k), "holder")), name) == 0) return true;
  }
  return false;
}

static struct jinja_value stage_statements(const struct program *program, const struct function *function, int stage);

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
  struct jinja_value taken = jinja_list(program->arena);
  for (int i = 0; i < jinja_count(list); i++)
    if (stage_takes(program, function, stage, i)) jinja_push(program->arena, taken, jinja_at(list, i));
  return taken;
}

static struct jinja_value stage_statement(const struct program *program, const struct function *function,
                                          const struct step *step, int stage) {
  struct arena *arena = program->arena;
  if (step->callee == NULL) return kernel_call_value(program, function, step);
  struct jinja_value value = call_value(program, function, step);
  set_stage_exchange(program, value, step);
  if (!step->callee->staged) return value;
  set_text(arena, value, "callee", stage_name(arena, step->callee, stage));
  set_bool(arena, value, "random", stage_draws(step->callee, stage));
  jinja_set(arena, value, "arguments", stage_part(program, step->callee, stage, jinja_get(value, "arguments")));
  return value;
}

/* First the values that any stage computes for itself, then those received, then the stage's own, then those sent;
 * before a function of which later stages have a part, too, since what that sends comes after. */
static struct jinja_value stage_statements(const struct program *program, const struct function *function, int stage) {
  struct jinja_value list = jinja_list(program->arena);
  bool received = false, sent = false;
  for (int i = 0; i < function->n_steps; i++) {
    const struct step *step = &function->steps[i];
    if ((step->stages >> stage & 1) == 0) continue;
    const bool staged = step->callee != NULL && step->callee->staged, own = staged || step->stage == stage;
    if (own && !received) {
      push_crossings(program, function, stage, false, list);
      push_arrived(program, function, stage, list);
    }
    received |= own;
    if (staged && step->stage != stage && !sent) {
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

struct jinja_value stage_value(const struct program *program, const struct function *function, int stage) {
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

/* Whether one of the arguments is a member of the arena, or of a record there. */
static bool has_argument(struct jinja_value arguments, const char *member) {
  for (int i = 0; i < jinja_count(arguments); i++) {
    struct jinja_value parts = jinja_get(jinja_at(arguments, i), "parts");
    struct jinja_value part = jinja_at(parts, jinja_count(parts) - 1);
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
  /* Samples are in the slots of a rank's first stage, saved values in those of the current stage. */
  const bool chunked = pipeline->stages > pipeline->ranks && function != program->entry.second;
  for (int i = 0; i < jinja_count(all) && program->kind == PROGRAM_TRAIN; i++) {
    struct jinja_value argument = jinja_at(all, i), part = jinja_at(jinja_get(argument, "parts"), 0);
    const char *member = jinja_text(jinja_get(part, "member"));
    bool saved = strcmp(member, "saved") == 0, sample = false;
    for (int k = 0; k < inputs->count; k++) sample |= strcmp(member, inputs->items[k]->name) == 0;
    if (!saved && !sample) continue;
    struct jinja_value index = index_value(arena, 0, 1, 0);
    if (sample && chunked) set_text(arena, index, "variable", "samples");
    if (sample && program->target->memory.separate) part = put_part_before(arena, argument, "feed");
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
