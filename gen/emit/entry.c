/* The calls of the entry functions, over members of the arena. */
#include <string.h>

#include "gen/emit/arguments.h"
#include "gen/emit/functions.h"
#include "gen/program/optimizers.h"
#include "gen/program/results.h"
#include "gen/program/sharding.h"

static struct jinja_value arena_member(struct arena *arena, const char *member, const char *inner, bool address) {
  struct jinja_value argument = argument_value(arena, "arena", address, 0);
  add_part(arena, argument, member);
  if (inner != NULL) add_part(arena, argument, inner);
  return argument;
}

const char *scratch_member(const struct program *program, const struct function *function) {
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
  if (takes_saved(function)) jinja_push(arena, list, arena_member(arena, "saved", NULL, true));
  if (saving_function(function)->aliased) jinja_push(arena, list, arena_member(arena, "aliased", NULL, true));
  if (function->scratch_bytes > 0 && function == program->entry.second && evaluation_reuses_saved(program))
    jinja_push(arena, list, arena_member(arena, "evaluation_scratch", NULL, true));
  else if (function->scratch_bytes > 0)
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
  if (evaluation_gathers_averages(program)) return "weights";
  if (program->job->training.ema.evaluate) return "averages";
  return job_optimizer(program->job)->averages ? "gradients" : "weights";
}

const struct function *evaluation_function(const struct program *program) {
  if (program->kind != PROGRAM_TRAIN) return NULL;
  if (program->entry.second != NULL) return program->entry.second;
  return strcmp(evaluation_weights(program), "weights") != 0 ? program->entry.forward : NULL;
}
