/* The entry: from a parsed model and a request to a graph. */
#include <string.h>

#include "gen/ir/names.h"
#include "gen/model/config.h"
#include "gen/model/evaluate.h"
#include "gen/model/model.h"

static const struct function *find_entry(const struct tree *program, const char *entry, struct arena *arena,
                                         struct diagnostics *diags) {
  const struct function *function = model_function(program, entry);
  if (function != NULL) return function;
  const char **names = arena_alloc(arena, ((size_t)program->n_functions + 1) * sizeof *names);
  int count = 0;
  for (int i = 0; i < program->n_functions; i++)
    if (model_owns(program->functions[i])) names[count++] = program->functions[i]->name;
  const char *similar = nearest_word(entry, names, count);
  struct location where = {.file = program->file};
  if (similar != NULL)
    diag_error(diags, where, "the model has no function '%s'; did you mean '%s'?", entry, similar);
  else
    diag_error(diags, where, "the model has no function '%s'", entry);
  diag_help(diags, "write tensor %s(scope s, struct config c, ...) with the data's tensors by name", entry);
  return NULL;
}

/* The data's tensors as a sentence: "tokens int32 [12][64], targets int32 [12][64]". */
static const char *list_inputs(struct arena *arena, const struct model_request *request) {
  const char *list = "";
  for (int i = 0; i < request->n_inputs; i++)
    list = arena_printf(arena, "%s%s%s %s %s", list, i == 0 ? "" : ", ", request->inputs[i].name,
                        dtype_name(request->inputs[i].dtype), shape_text(arena, request->inputs[i].shape));
  return list;
}

/* Programs call an input as the data does. */
static void check_name(struct evaluator *evaluator, const struct variable *parameter) {
  if (strcmp(identifier(evaluator->arena, parameter->name), parameter->name) == 0) return;
  const char *help = "rename the parameter and the data's input, as in data.inputs: {age: {column: AGE}}";
  evaluate_fail(evaluator, parameter->where, help,
                "'%s' is not a name for an input: C or programs have it, or may have it as a macro", parameter->name);
}

static struct cvalue input_argument(struct evaluator *evaluator, const struct variable *parameter,
                                    const struct model_request *request) {
  const char **names = arena_alloc(evaluator->arena, ((size_t)request->n_inputs + 1) * sizeof *names);
  for (int i = 0; i < request->n_inputs; i++) {
    const struct model_input *input = &request->inputs[i];
    names[i] = input->name;
    if (strcmp(input->name, parameter->name) != 0) continue;
    check_name(evaluator, parameter);
    return cvalue_tensor(builder_input(evaluator->builder, input->name, input->shape, input->dtype));
  }
  const char *similar = nearest_word(parameter->name, names, request->n_inputs);
  const char *help = arena_printf(evaluator->arena, "%s%s%sthe data gives: %s", similar == NULL ? "" : "did you mean '",
                                  similar == NULL ? "" : similar, similar == NULL ? "" : "'? ",
                                  list_inputs(evaluator->arena, request));
  evaluate_fail(evaluator, parameter->where, help, "the data has no tensor '%s'", parameter->name);
}

static struct cvalue entry_argument(struct evaluator *evaluator, const struct variable *parameter, struct scope *root,
                                    const struct model_request *request) {
  switch (ctype_of(parameter->type)) {
  case CTYPE_SCOPE:
    return cvalue_scope(root);
  case CTYPE_TENSOR:
    return input_argument(evaluator, parameter, request);
  case CTYPE_STRUCT:
    return config_argument(evaluator, parameter->type, request);
  default:
    evaluate_fail(evaluator, parameter->where, "an entry has a scope, a struct for the config, and tensors of the data",
                  "nothing gives '%s' a value", parameter->name);
  }
}

static bool has_config(const struct function *function) {
  for (int i = 0; i < function->n_parameters; i++)
    if (ctype_of(function->parameters[i]->type) == CTYPE_STRUCT) return true;
  return false;
}

static void check_result(struct evaluator *evaluator, const struct function *function, struct cvalue result,
                         const struct model_request *request) {
  if (result.kind != CVALUE_TENSOR)
    evaluate_fail(evaluator, function->where, NULL, "'%s' must return a tensor", function->name);
  struct shape shape = result.tensor->shape;
  if (!request->loss) return;
  if (shape.rank != 0)
    evaluate_fail(evaluator, function->where, "return a mean, such as cross_entropy(logits, targets) or mean_all(x)",
                  "the loss must be a scalar, but '%s' returns shape %s", function->name,
                  shape_text(evaluator->arena, shape));
  if (!result.tensor->differentiable)
    evaluate_fail(evaluator, function->where, "use linear, embedding, parameter, ... on the way to the loss",
                  "the loss of '%s' depends on no parameter", function->name);
}

/* Metrics compare what 'predict' gave with the labels; only the entry's own call of it gives a value of the entry. */
static struct value *prediction_of(struct evaluator *evaluator, const struct function *function) {
  if (evaluator->predicted.kind == CVALUE_TENSOR) return evaluator->predicted.tensor;
  evaluate_fail(evaluator, function->where,
                "write 'tensor predict(scope s, struct config c, ...)' that returns logits, and let the entry call it",
                "metrics need what the model predicts, but '%s' calls no 'predict'", function->name);
}

static void run_entry(struct evaluator *evaluator, const struct function *function,
                      const struct model_request *request) {
  struct scope *root;
  builder_begin_entry(evaluator->builder, function->name, function->where, &root);
  struct cvalue *arguments = arena_alloc(evaluator->arena, ((size_t)function->n_parameters + 1) * sizeof *arguments);
  for (int i = 0; i < function->n_parameters; i++)
    arguments[i] = entry_argument(evaluator, function->parameters[i], root, request);
  if (!has_config(function) && request->n_config > 0)
    evaluate_fail(evaluator, request->config[0].name_where, NULL, "the model takes no config");
  struct cvalue result = call_function(evaluator, function, arguments, function->where);
  check_result(evaluator, function, result, request);
  struct value *results[] = {result.tensor, request->prediction ? prediction_of(evaluator, function) : NULL};
  builder_end_region(evaluator->builder, results, request->prediction ? 2 : 1, NULL);
}

/* Alone in its function, so that no variable of it lives across the jump. */
static bool run_guarded(struct evaluator *evaluator, const struct function *function,
                        const struct model_request *request) {
  if (setjmp(evaluator->failure) != 0) return false;
  run_entry(evaluator, function, request);
  return true;
}

struct evaluator model_evaluator(struct arena *arena, const struct tree *program, struct diagnostics *diags) {
  return (struct evaluator){.arena = arena,
                            .diags = diags,
                            .builder = builder_new(arena, diags),
                            .program = program,
                            .statics = arena_alloc(arena, ((size_t)program->n_statics + 1) * sizeof(struct cvalue))};
}

struct graph *model_graph(struct arena *arena, const struct tree *program, const struct model_request *request,
                          struct diagnostics *diags) {
  const struct function *function = find_entry(program, request->entry, arena, diags);
  if (function == NULL || !check_reachable(arena, function, diags)) return NULL;
  struct evaluator evaluator = model_evaluator(arena, program, diags);
  if (!run_guarded(&evaluator, function, request)) {
    builder_abandon(evaluator.builder);
    return NULL;
  }
  return builder_graph(evaluator.builder);
}
