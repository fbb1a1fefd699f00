/* Whole models in float64: the gradient of every parameter against central differences, and the same numbers from the
 * graph that passes have rewritten. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gen/ir/builder.h"
#include "gen/ir/evaluate.h"
#include "gen/plan/graph/differentiate.h"
#include "gen/plan/graph/fuse.h"
#include "gen/plan/graph/prune.h"
#include "tests/ops/examples.h"

enum { BATCH = 2, TOKENS = 5, VOCABULARY = 7, COLUMNS = 3, CLASSES = 4, SAMPLES = 4 };

static const struct model_case cases[] = {
    EXAMPLE_GPT("examples/models/gpt2.c", 3, 2, 6, 0.2, VOCABULARY, TOKENS),
    EXAMPLE_GPT("examples/models/nanogpt.c", 2, 2, 6, 0, VOCABULARY, TOKENS),
    EXAMPLE_GRU(5, VOCABULARY, TOKENS),
    EXAMPLE_MLP(3, 5, CLASSES),
};

static const struct model_input token_inputs[] = TOKEN_INPUTS(BATCH, TOKENS);
static const struct model_input table_inputs[] = TABLE_INPUTS(BATCH, COLUMNS);

/* A parameter's elements, made at the first request. */
struct weight {
  const char *name;
  int64_t count;
  double *elements;
};

struct bench {
  struct arena *arena;
  struct graph *graph;
  struct region *backward;
  const double *inputs[2];
  uint32_t state;
  struct {
    struct weight *items;
    int count, capacity;
  } weights;
};

/* The generator of Numerical Recipes: any numbers do here, as long as they are always the same. */
static double random_number(struct bench *bench) {
  bench->state = bench->state * 1664525u + 1013904223u;
  return bench->state / 4294967296.0;
}

static double *random_numbers(struct bench *bench, int64_t count, double factor, bool integers) {
  double *numbers = arena_alloc(bench->arena, (size_t)count * sizeof *numbers);
  for (int64_t i = 0; i < count; i++) {
    double x = random_number(bench);
    numbers[i] = integers ? floor(x * factor) : (2 * x - 1) * factor;
  }
  return numbers;
}

static const double *lookup(void *context, const char *name, const struct parameter *parameter) {
  struct bench *bench = context;
  for (int i = 0; i < bench->weights.count; i++)
    if (strcmp(bench->weights.items[i].name, name) == 0) return bench->weights.items[i].elements;
  int64_t count = shape_count(parameter->shape);
  struct weight weight = {arena_string(bench->arena, name), count, random_numbers(bench, count, 0.7, false)};
  ARENA_PUSH(bench->arena, bench->weights, weight);
  return weight.elements;
}

static struct bench read_model(const struct model_case *at) {
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  struct bench bench = {.arena = arena, .state = 1};
  struct model_request request = {.entry = "model",
                                  .loss = true,
                                  .config = at->config,
                                  .n_config = at->n_config,
                                  .inputs = at->table ? table_inputs : token_inputs,
                                  .n_inputs = 2};
  struct tree *source = model_parse(arena, at->file, &diags);
  if (source != NULL) bench.graph = model_graph(arena, source, &request, &diags);
  if (bench.graph != NULL)
    bench.backward = differentiate(builder_on(bench.graph, &diags), &(struct seed){.constant = 1});
  if (bench.backward == NULL) diag_print(&diags, stderr, false);
  assert_non_null(bench.backward);
  bool table = at->table;
  bench.inputs[0] = random_numbers(&bench, shape_count(request.inputs[0].shape), table ? 1 : VOCABULARY, !table);
  bench.inputs[1] = random_numbers(&bench, shape_count(request.inputs[1].shape), table ? CLASSES : VOCABULARY, true);
  return bench;
}

static double loss_of(const struct bench *bench, const struct frame_data *frame) {
  return *evaluated(frame, bench->graph->entry->results.items[0]);
}

static double loss_now(struct bench *bench) {
  struct arena *arena = arena_new();
  struct evaluator *evaluator = evaluator_new(arena, bench->graph, lookup, bench);
  double loss = loss_of(bench, evaluate_region(evaluator, bench->graph->entry, bench->inputs));
  arena_free(arena);
  return loss;
}

static double slope(struct bench *bench, double *element) {
  static const double step = 1e-4, steps[] = {1, -1, 2, -2}, factors[] = {8, -8, -1, 1};
  double before = *element, sum = 0;
  for (int i = 0; i < 4; i++) {
    *element = before + steps[i] * step;
    sum += factors[i] * loss_now(bench);
  }
  *element = before;
  return sum / (12 * step);
}

static void check_gradients(struct bench *bench, const struct evaluator *evaluator) {
  for (int i = 0; i < bench->weights.count; i++) {
    const struct weight *weight = &bench->weights.items[i];
    const double *gradient = evaluated_gradient(evaluator, weight->name);
    if (gradient == NULL) fail_msg("%s has no gradient", weight->name);
    for (int n = 0; n < SAMPLES; n++) {
      int64_t k = (int64_t)(random_number(bench) * (double)weight->count);
      double expected = slope(bench, &weight->elements[k]);
      if (!(fabs(expected - gradient[k]) < 1e-8 * (1 + fabs(expected))))
        fail_msg("d %s[%lld] is %.12g, differences say %.12g", weight->name, (long long)k, gradient[k], expected);
    }
  }
}

/* The rewritten graph must give what `before` gave. */
static void check_same(struct bench *bench, const struct evaluator *before, double loss) {
  struct evaluator *after = evaluator_new(bench->arena, bench->graph, lookup, bench);
  struct frame_data *forward = evaluate_region(after, bench->graph->entry, bench->inputs);
  assert_true(fabs(loss_of(bench, forward) - loss) < 1e-12);
  evaluate_backward(after, bench->backward, forward, NULL);
  for (int i = 0; i < bench->weights.count; i++) {
    const double *a = evaluated_gradient(before, bench->weights.items[i].name);
    const double *b = evaluated_gradient(after, bench->weights.items[i].name);
    assert_non_null(b);
    for (int64_t k = 0; k < bench->weights.items[i].count; k++) assert_true(fabs(a[k] - b[k]) < 1e-12);
  }
}

static void check_model(void **state) {
  struct bench bench = read_model(*state);
  struct evaluator *evaluator = evaluator_new(bench.arena, bench.graph, lookup, &bench);
  struct frame_data *forward = evaluate_region(evaluator, bench.graph->entry, bench.inputs);
  evaluate_backward(evaluator, bench.backward, forward, NULL);
  check_gradients(&bench, evaluator);
  double loss = loss_of(&bench, forward);
  prune(bench.graph);
  check_same(&bench, evaluator, loss);
  fuse(bench.graph);
  check_same(&bench, evaluator, loss);
  arena_free(bench.arena);
}

enum { CASES = sizeof cases / sizeof cases[0] };

int main(void) {
  struct CMUnitTest tests[CASES];
  for (int i = 0; i < CASES; i++)
    tests[i] = (struct CMUnitTest){.name = cases[i].file, .test_func = check_model, .initial_state = (void *)&cases[i]};
  return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}
