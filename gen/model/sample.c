#include "gen/model/sample.h"

#include "gen/model/config.h"
#include "gen/model/evaluate.h"

static const char function_name[] = "published_inputs";

static _Noreturn void refuse(struct evaluator *evaluator, const struct function *function, const char *problem) {
  evaluate_fail(evaluator, function->where,
                "write struct published_inputs published_inputs(struct config c) { return (struct "
                "published_inputs){{{\"labels\", .whole = true}}}; }",
                "'%s' %s", function_name, problem);
}

/* The extents before the first 0. */
static struct shape shape_in(struct evaluator *evaluator, const struct function *function, const struct cvalue *cell) {
  struct shape shape = {0};
  if (cell->kind != CVALUE_AGGREGATE) refuse(evaluator, function, "gives an input no shape");
  for (int64_t i = 0; i < cell->count && cell->items[i].integer != 0; i++) {
    if (cell->items[i].kind != CVALUE_INTEGER || cell->items[i].integer < 0 || shape.rank == MAX_RANK)
      refuse(evaluator, function, "gives an input an extent that is not above 0");
    shape.dim[shape.rank++] = cell->items[i].integer;
  }
  return shape;
}

static void read_inputs(struct evaluator *evaluator, const struct function *function,
                        const struct model_request *request, struct sample_tensors *inputs) {
  const bool takes_config = function->n_parameters == 1 && ctype_of(function->parameters[0]->type) == CTYPE_STRUCT;
  if (!takes_config) refuse(evaluator, function, "does not take the config alone");
  const struct cvalue config = config_argument(evaluator, function->parameters[0]->type, request);
  const struct cvalue result = call_function(evaluator, function, &config, function->where);
  const struct cvalue *list = result.kind == CVALUE_AGGREGATE && result.count == 1 ? &result.items[0] : NULL;
  if (list == NULL || list->kind != CVALUE_AGGREGATE) refuse(evaluator, function, "returns no struct published_inputs");
  for (int64_t i = 0; i < list->count; i++) {
    const struct cvalue *item = &list->items[i];
    if (item->kind != CVALUE_AGGREGATE || item->count != 3) refuse(evaluator, function, "returns no inputs");
    const char *name = cvalue_string_of(&item->items[0]);
    if (name == NULL) break;
    const struct sample_tensor input = {
        .name = name, .shape = shape_in(evaluator, function, &item->items[1]), .whole = item->items[2].integer != 0};
    ARENA_PUSH(evaluator->arena, *inputs, input);
  }
}

/* Alone in its function, so that no variable of it lives across the jump. */
static bool read_guarded(struct evaluator *evaluator, const struct function *function,
                         const struct model_request *request, struct sample_tensors *inputs) {
  if (setjmp(evaluator->failure) != 0) return false;
  read_inputs(evaluator, function, request, inputs);
  return true;
}

bool model_sample(struct arena *arena, const struct tree *model, const struct model_request *request,
                  struct sample_tensors *inputs, struct diagnostics *diags) {
  const struct function *function = model_function(model, function_name);
  *inputs = (struct sample_tensors){0};
  if (function == NULL) return true;
  if (!check_reachable(arena, function, diags)) return false;
  struct evaluator evaluator = model_evaluator(arena, model, diags);
  const bool read = read_guarded(&evaluator, function, request, inputs);
  builder_abandon(evaluator.builder);
  return read;
}
