/* Example models in StableHLO: loops over layers, functions in functions, what is computed again. The loss and the
 * gradient of each parameter, run by XLA in float32, against the operations' float64 references. Skipped without a
 * plugin. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gen/ir/builder.h"
#include "gen/ir/evaluate.h"
#include "gen/plan/graph/differentiate.h"
#include "gen/plan/graph/prune.h"
#include "tests/ops/examples.h"
#include "tests/xla/compare.h"

enum { BATCH = 2, TOKENS = 5, VOCABULARY = 7, COLUMNS = 3, CLASSES = 4 };

static const struct checked {
  const char *name;
  struct model_case model;
  const char *recomputed; /* the function that keeps nothing for its backward */
} cases[] = {
    {"gpt2", EXAMPLE_GPT("examples/models/gpt2.c", 3, 2, 6, 0, VOCABULARY, TOKENS), NULL},
    {"gpt2, blocks again", EXAMPLE_GPT("examples/models/gpt2.c", 3, 2, 6, 0, VOCABULARY, TOKENS), "block"},
    {"nanogpt, mlp again", EXAMPLE_GPT("examples/models/nanogpt.c", 2, 2, 6, 0, VOCABULARY, TOKENS), "mlp"},
    {"gru_bytes", EXAMPLE_GRU(5, VOCABULARY, TOKENS), NULL},
    {"mlp_table", EXAMPLE_MLP(3, 5, CLASSES), NULL},
};

static const struct model_input token_inputs[] = TOKEN_INPUTS(BATCH, TOKENS);
static const struct model_input table_inputs[] = TABLE_INPUTS(BATCH, COLUMNS);
static struct xla *xla;

struct tensor {
  const char *name;
  double *elements;
};

struct bench {
  struct arena *arena;
  struct graph *graph;
  struct region *backward;
  struct evaluator *evaluator;
  const struct model_input *inputs; /* two */
  uint32_t state;
  double loss;
  struct {
    struct tensor *items;
    int count, capacity;
  } tensors; /* inputs and parameters */
};

static double *new_tensor(struct bench *bench, const char *name, struct shape shape, int64_t bound) {
  const struct tensor tensor = {name, arena_alloc(bench->arena, (size_t)shape_count(shape) * sizeof *tensor.elements)};
  for (int64_t i = 0; i < shape_count(shape); i++) {
    bench->state = bench->state * 1664525u + 1013904223u;
    const double x = bench->state / 4294967296.0;
    tensor.elements[i] = bound > 0 ? floor(x * (double)bound) : (double)(float)(1.4 * x - 0.7);
  }
  ARENA_PUSH(bench->arena, bench->tensors, tensor);
  return tensor.elements;
}

static const double *argument(void *context, const char *name) {
  const struct bench *bench = context;
  for (int i = 0; i < bench->tensors.count; i++)
    if (strcmp(bench->tensors.items[i].name, name) == 0) return bench->tensors.items[i].elements;
  return NULL;
}

static const double *parameter_of(void *context, const char *name, const struct parameter *parameter) {
  const double *known = argument(context, name);
  struct bench *bench = context;
  return known != NULL ? known : new_tensor(bench, arena_string(bench->arena, name), parameter->shape, 0);
}

static const double *result(void *context, const char *name, double *scale) {
  const struct bench *bench = context;
  (void)scale;
  return strcmp(name, "loss") == 0 ? &bench->loss : evaluated_gradient(bench->evaluator, name);
}

static struct bench read_model(const struct checked *at) {
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  struct bench bench = {.arena = arena, .state = 1, .inputs = at->model.table ? table_inputs : token_inputs};
  const struct model_request request = {.entry = "model",
                                        .loss = true,
                                        .config = at->model.config,
                                        .n_config = at->model.n_config,
                                        .inputs = bench.inputs,
                                        .n_inputs = 2};
  struct tree *source = model_parse(arena, at->model.file, &diags);
  if (source != NULL) bench.graph = model_graph(arena, source, &request, &diags);
  if (bench.graph == NULL) diag_print(&diags, stderr, false);
  assert_non_null(bench.graph);
  for (int i = 0; i < bench.graph->n_regions; i++)
    if (at->recomputed != NULL && strcmp(bench.graph->regions[i]->function, at->recomputed) == 0)
      bench.graph->regions[i]->recompute = true;
  bench.backward = differentiate(builder_on(bench.graph, &diags), &(struct seed){.constant = 0.5});
  assert_non_null(bench.backward);
  return bench;
}

static void measure(struct bench *bench, bool table) {
  const double *inputs[2];
  inputs[0] = new_tensor(bench, bench->inputs[0].name, bench->inputs[0].shape, table ? 0 : VOCABULARY);
  inputs[1] = new_tensor(bench, bench->inputs[1].name, bench->inputs[1].shape, table ? CLASSES : VOCABULARY);
  bench->evaluator = evaluator_new(bench->arena, bench->graph, parameter_of, bench);
  const struct frame_data *frame = evaluate_region(bench->evaluator, bench->graph->entry, inputs);
  evaluate_backward(bench->evaluator, bench->backward, frame, NULL);
  bench->loss = *evaluated(frame, bench->graph->entry->results.items[0]);
}

static void check_model(void **state) {
  const struct checked *at = *state;
  struct bench bench = read_model(at);
  struct hlo_module module;
  struct diagnostics diags = diagnostics_in(bench.arena);
  measure(&bench, at->model.table);
  prune(bench.graph);
  assert_true(hlo_make(bench.arena, bench.graph, "test", &module, &diags));
  assert_int_equal(module.results.count, 1 + bench.tensors.count - 2);
  const struct sides sides = {&bench, argument, result};
  const char *wrong = compare_module(bench.arena, xla, &module, &sides, 2e-5);
  if (wrong != NULL) fail_msg("%s: %s\n%s", at->name, wrong, module.text);
  arena_free(bench.arena);
}

enum { CASES = sizeof cases / sizeof cases[0] };

int main(void) {
  struct CMUnitTest tests[CASES];
  xla = open_plugin();
  if (xla == NULL) return 77;
  for (int i = 0; i < CASES; i++)
    tests[i] = (struct CMUnitTest){.name = cases[i].name, .test_func = check_model, .initial_state = (void *)&cases[i]};
  const int failed = cmocka_run_group_tests_name("models", tests, NULL, NULL);
  rt_xla_close(xla);
  return failed;
}
