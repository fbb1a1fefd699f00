/* Whole planned programs against the graphs that they were planned from: loss and every gradient, for the example
 * models and for random models of functions, loops, views and shared parameters, drawn by SEED. PLAN_SEED=n repeats one
 * model, whose number its file has; PLAN_MODELS=n makes more. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "gen/base/text.h"
#include "gen/ir/builder.h"
#include "gen/plan/graph/differentiate.h"
#include "gen/plan/graph/recompute.h"
#include "gen/plan/solve.h"
#include "tests/ops/examples.h"
#include "tests/plan/machine.h"

enum { BATCH = 2, TOKENS = 3, VOCABULARY = 7, COLUMNS = 8, CLASSES = 3 };

static const struct model_input token_inputs[] = TOKEN_INPUTS(BATCH, TOKENS);
static const struct model_input table_inputs[] = TABLE_INPUTS(BATCH, COLUMNS);

/* ---- Random numbers and parameters ---- */

struct numbers {
  const char *name;
  double *elements;
};

struct bench {
  struct arena *arena;
  const struct model_case *at;
  struct tree *source; /* read once: most of the time would go to libclang */
  uint64_t state;
  const double *inputs[2];
  struct {
    struct numbers *items;
    int count, capacity;
  } weights;
};

/* splitmix64 */
static uint64_t random_word(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static double *random_numbers(struct bench *bench, int64_t count, int integers) {
  double *numbers = arena_alloc(bench->arena, (size_t)count * sizeof *numbers);
  for (int64_t i = 0; i < count; i++) {
    double unit = (double)(random_word(&bench->state) >> 11) / 9007199254740992.0;
    numbers[i] = integers > 0 ? floor(unit * integers) : 1.4 * unit - 0.7;
  }
  return numbers;
}

static const double *lookup(void *context, const char *name, const struct parameter *parameter) {
  struct bench *bench = context;
  for (int i = 0; i < bench->weights.count; i++)
    if (strcmp(bench->weights.items[i].name, name) == 0) return bench->weights.items[i].elements;
  struct numbers weight = {arena_string(bench->arena, name), random_numbers(bench, shape_count(parameter->shape), 0)};
  ARENA_PUSH(bench->arena, bench->weights, weight);
  return weight.elements;
}

/* ---- One model, both ways ---- */

static struct graph *read_graph(struct bench *bench, struct arena *arena, struct diagnostics *diags) {
  const struct model_case *at = bench->at;
  struct model_request request = {.entry = "model",
                                  .loss = true,
                                  .config = at->config,
                                  .n_config = at->n_config,
                                  .inputs = at->table ? table_inputs : token_inputs,
                                  .n_inputs = 2};
  if (bench->source == NULL) bench->source = model_parse(bench->arena, at->file, diags);
  struct graph *graph = bench->source != NULL ? model_graph(arena, bench->source, &request, diags) : NULL;
  if (graph == NULL) diag_print(diags, stderr, false);
  assert_non_null(graph);
  return graph;
}

static struct graph *read_again(void *context, struct arena *arena, const struct job *job, struct diagnostics *diags) {
  (void)job;
  return read_graph(context, arena, diags);
}

/* expected NULL: nothing flows there, so nothing may be written; the arena starts as zeros. */
static void compare(const char *what, const double *found, const double *expected, int64_t count, const char *model) {
  for (int64_t i = 0; i < count; i++) {
    if (expected == NULL && (isnan(found[i]) || found[i] == 0)) continue;
    double truth = expected != NULL ? expected[i] : 0;
    if (isnan(truth) && isnan(found[i])) continue; /* a random model may grow beyond all bounds */
    if (!(fabs(found[i] - truth) <= 1e-9 * (1 + fabs(truth))))
      fail_msg("%s: %s[%lld] is %.12g, not %.12g", model, what, (long long)i, found[i], truth);
  }
}

/* A graph differentiated and run as it is: its loss, and an evaluator that has its gradients. */
static struct evaluator *evaluate(struct bench *bench, const struct job *job, struct diagnostics *diags, double *loss) {
  struct program draft = {.arena = bench->arena, .job = job, .graph = read_graph(bench, bench->arena, diags)};
  assert_true(choose_recomputation(&draft, diags));
  struct region *backward =
      differentiate(builder_on(draft.graph, diags), &(struct seed){.constant = 1.0 / job->accumulation.num_steps});
  assert_non_null(backward);
  struct evaluator *evaluator = evaluator_new(bench->arena, draft.graph, lookup, bench);
  struct frame_data *frame = evaluate_region(evaluator, draft.graph->entry, bench->inputs);
  evaluate_backward(evaluator, backward, frame, NULL);
  *loss = *evaluated(frame, draft.graph->entry->results.items[0]);
  return evaluator;
}

static struct numbers *weight_of(struct bench *bench, const char *path) {
  for (int i = 0; i < bench->weights.count; i++)
    if (strcmp(bench->weights.items[i].name, path) == 0) return &bench->weights.items[i];
  return NULL;
}

/* Whether the model has the functions that the job wants recomputed: a random one may call none. */
static bool can_recompute(struct bench *bench, const struct job *job) {
  struct diagnostics diags = diagnostics_in(bench->arena);
  struct program draft = {.arena = bench->arena, .job = job, .graph = read_graph(bench, bench->arena, &diags)};
  return choose_recomputation(&draft, &diags);
}

/* How many programs keep values in memory of gradients, how many of them took a loop apart for it, and in how many a
 * loop hands on the operands of a sum. */
struct aliasing {
  int programs, parted, carrying;
};

static bool carries_sums(const struct program *program) {
  const struct graph *graph = program->graph;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct call *call = graph->regions[r]->nodes.items[i]->call;
      if (call != NULL && call->after != NULL) return true;
    }
  return false;
}

/* Whether a loop begins with another iteration than its first, though nothing is recomputed. */
static bool is_parted(const struct program *program) {
  const struct graph *graph = program->graph;
  if (program->job->memory.activation_checkpointing != CHECKPOINTING_NONE) return false;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct call *call = graph->regions[r]->nodes.items[i]->call;
      if (call != NULL && call->forward == NULL && call->first > 0) return true;
    }
  return false;
}

/* The planned program, and the graph with what is recomputed, against the graph in which nothing is. */
static void check(const struct model_case *at, uint64_t seed, const struct job *job, struct aliasing *aliasing) {
  struct bench bench = {.arena = arena_new(), .at = at, .state = seed};
  struct diagnostics diags = diagnostics_in(bench.arena);
  bench.inputs[0] = random_numbers(&bench, at->table ? BATCH * COLUMNS : BATCH * TOKENS, at->table ? 0 : VOCABULARY);
  bench.inputs[1] = random_numbers(&bench, at->table ? BATCH : BATCH * TOKENS, at->table ? CLASSES : VOCABULARY);

  struct job plain = *job;
  plain.memory.activation_checkpointing = CHECKPOINTING_NONE;
  if (!can_recompute(&bench, job)) job = &plain;
  double loss, again;
  struct evaluator *truth = evaluate(&bench, &plain, &diags, &loss);
  struct evaluator *recomputed = evaluate(&bench, job, &diags, &again);
  compare("loss", &again, &loss, 1, at->file);

  struct planner planner = {.read = read_again, .context = &bench, .request.kind = PROGRAM_TRAIN};
  struct program *program = plan_least(bench.arena, &planner, job, &diags, NULL, NULL);
  if (program == NULL) diag_print(&diags, stderr, false);
  assert_non_null(program);
  struct machine machine = {
      .arena = bench.arena, .program = program, .parameter = lookup, .context = &bench, .inputs = bench.inputs};
  machine_run(&machine);
  aliasing->programs += program->aliases.count > 0;
  aliasing->parted += is_parted(program);
  aliasing->carrying += carries_sums(program);
  compare("loss", &machine.loss, &loss, 1, at->file);
  for (int i = 0; i < program->weights->count; i++) {
    const struct numbers *weight = weight_of(&bench, program->weights->items[i].path);
    if (weight == NULL) continue; /* pruned: nothing read it */
    int64_t count = shape_count(program->weights->items[i].parameter->shape);
    const double *gradient = evaluated_gradient(truth, weight->name);
    compare(weight->name, machine.gradients[i], gradient, count, at->file);
    if (gradient != NULL)
      compare(weight->name, evaluated_gradient(recomputed, weight->name), gradient, count, at->file);
  }
  arena_free(bench.arena);
}

/* One of the ways to save memory, by a number; `chunks`: the loss is over a matmul without bias. */
static struct job job_number(uint64_t number, int micro_steps, bool chunks) {
  struct job job = {.accumulation = {.num_steps = micro_steps},
                    .devices = {.kind = number % 2 ? DEVICE_CUDA : DEVICE_CPU}};
  static const enum checkpointing ways[] = {CHECKPOINTING_NONE, CHECKPOINTING_ALL, CHECKPOINTING_EVERY,
                                            CHECKPOINTING_LAYERS, CHECKPOINTING_FUNCTIONS};
  static struct named functions[] = {{.name = "part0"}, {.name = "part1"}};
  job.memory.activation_checkpointing = ways[number % 5];
  if (chunks) job.memory.cross_entropy_chunk = 1 + (int64_t)(number % 4);
  job.memory.checkpoint_every = 2 + (int)(number / 5 % 2);
  job.memory.checkpoint_layers = 1 + (int)(number / 5 % 3);
  job.memory.functions = functions;
  job.memory.n_functions = 1 + (int)(number / 5 % 2);
  return job;
}

/* ---- The example models ---- */

static const struct model_case examples[] = {
    EXAMPLE_GPT("examples/models/gpt2.c", 3, 2, 6, 0, VOCABULARY, TOKENS),
    EXAMPLE_GPT("examples/models/nanogpt.c", 1, 1, 4, 0, VOCABULARY, TOKENS),
    EXAMPLE_GRU(5, VOCABULARY, TOKENS),
    EXAMPLE_MLP(3, 5, CLASSES),
};

static void test_examples(void **state) {
  (void)state;
  struct aliasing aliasing = {0};
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
    for (uint64_t number = 0; number < 9; number++) {
      struct job job = job_number(number < 4 ? number : number + 1, 1 + (int)(number % 2), i < 2); /* none by name */
      check(&examples[i], i + 1, &job, &aliasing);
    }
  assert_true(aliasing.carrying > 0);
}

/* ---- Several contributions to one gradient ---- */

/* Each a body that makes x of the features, and the functions that it calls. */
static const struct {
  const char *body, *functions;
} contributions[] = {
    /* The sum's gradient is the first contribution, and is read after the second. */
    {.body = "tensor p = parameter(at(s, \"p\"), \"w\", 2, 8);\n"
             "tensor x = add(add(linear(at(s, \"in\"), features, 8), tanh_of(p)), p);\n"},
    /* One value contributes three times. */
    {.body = "tensor p = parameter(at(s, \"p\"), \"w\", 2, 8);\n"
             "tensor x = add(features, add(add(p, p), p));\n"},
    /* A view contributes, whose matmul runs before the matmul that contributes itself. */
    {.body = "tensor w = parameter(at(s, \"p\"), \"w\", 8, 8), v = reshape(w, 64);\n"
             "tensor x = matmul(matmul(features, w), reshape(v, 8, 8));\n"},
    /* One loop makes all contributions. */
    {.body = "tensor p = parameter(at(s, \"p\"), \"w\", 2, 8);\n"
             "tensor x = add(features, l1_loss(p, scale(p, 0.5)));\n"},
    /* One kernel contributes twice to one weight in a call that gives a scope twice, and to two weights in the other.
     */
    {.functions = "static tensor gate(scope s, scope t, tensor x) {\n"
                  "return mul(x, exp_of(add(parameter(s, \"w\", 2, 8), tanh_of(parameter(t, \"w\", 2, 8)))));\n}\n",
     .body = "tensor x = gate(at(s, \"p\"), at(s, \"p\"), features);\n"
             "x = gate(at(s, \"q\"), at(s, \"r\"), x);\n"},
};

static const char *model_around(struct arena *arena, const char *functions, const char *body) {
  return arena_printf(arena,
                      "#include <accel/model.h>\nstruct config { int unused; };\nconst struct config defaults = {0};\n"
                      "%stensor model(scope s, struct config c, tensor features, tensor labels) {\n%s"
                      "return cross_entropy(linear(at(s, \"out\"), x, %d), labels);\n}\n",
                      functions, body, CLASSES);
}

static void check_text(const char *name, const char *text, uint64_t seed, const struct job *job,
                       struct aliasing *aliasing) {
  struct arena *arena = arena_new();
  const char *path = arena_printf(arena, "build/tests/plan/%s-%llu.c", name, (unsigned long long)seed);
  mkdir("build/tests/plan", 0777);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
  check(&(struct model_case){.file = path, .table = true}, seed, job, aliasing);
  remove(path); /* a model that fails stays, to be looked at */
  arena_free(arena);
}

static void test_contributions(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  struct aliasing aliasing = {0};
  for (size_t i = 0; i < sizeof contributions / sizeof *contributions; i++)
    for (uint64_t number = 0; number < 4; number++) {
      struct job job = job_number(number, 1 + (int)(number % 2), false);
      const char *functions = contributions[i].functions;
      const char *text = model_around(arena, functions != NULL ? functions : "", contributions[i].body);
      check_text("contributions", text, i + 1, &job, &aliasing);
    }
  arena_free(arena);
}

/* ---- Random models ---- */

static int pick(uint64_t *state, int bound) {
  return (int)(random_word(state) % (uint64_t)bound);
}

/* An expression of one of the tensors x0 ... x(n - 1), all [BATCH][COLUMNS]. Functions part0 ... exist up to `parts`.
 */
static void write_expression(struct text *text, uint64_t *state, int n, int parts, int line) {
  static const char *const unary[] = {"tanh_of", "sigmoid", "neg", "square", "gelu_tanh", "silu", "softmax"};
  static const char *const binary[] = {"add", "sub", "mul", "add"};
  int a = pick(state, n), b = pick(state, n);
  switch (pick(state, 12)) {
  case 0:
  case 1:
    text_printf(text, "%s(x%d)", unary[pick(state, 7)], a);
    break;
  case 2:
  case 3:
    text_printf(text, "%s(x%d, x%d)", binary[pick(state, 4)], a, b);
    break;
  case 4:
    text_printf(text, "linear(at(s, \"l%d\"), x%d, %d)", pick(state, 2) == 0 ? 0 : line, a, COLUMNS);
    break;
  case 5:
    text_printf(text, "layer_norm(at(s, \"n%d\"), x%d)", line, a);
    break;
  case 6:
    text_printf(text, "transpose(add(transpose(x%d, 0, 1), transpose(x%d, 0, 1)), 0, 1)", a, b);
    break;
  case 7:
    text_printf(text, "concat(1, slice(x%d, 1, 1, %d), split(x%d, 1, %d, %d))", a, COLUMNS - 1, b, COLUMNS,
                pick(state, COLUMNS));
    break;
  case 8:
    text_printf(text, "add(x%d, parameter(s, \"shared\", %d))", a, COLUMNS);
    break;
  case 9:
    if (parts > 0)
      text_printf(text, "part%d(at(s, \"p%d\"), x%d, x%d)", pick(state, parts), line, a, b);
    else
      text_printf(text, "scale(x%d, 0.5)", a);
    break;
  case 10:
    text_printf(text, "parameter(init_normal(at(s, \"w%d\"), 0.5), \"v\", %d, %d)", line, BATCH, COLUMNS);
    break;
  default:
    text_printf(text, "reshape(scale(reshape(x%d, %d), 0.7), %d, %d)", a, BATCH * COLUMNS, BATCH, COLUMNS);
  }
}

static void write_body(struct text *text, uint64_t *state, int given, int parts) {
  int n = given, lines = 2 + pick(state, 5);
  for (int line = 1; line <= lines; line++, n++) {
    if (parts > 0 && pick(state, 4) == 0) {
      text_printf(text,
                  "  tensor x%d = x%d;\n  for (int i = 0; i < %d; i++) x%d = part%d(nth(s, \"h%d\", i), x%d, x%d);\n",
                  n, n - 1, 1 + pick(state, 4), n, pick(state, parts), line, n, pick(state, n));
      continue;
    }
    text_printf(text, "  tensor x%d = ", n);
    write_expression(text, state, n, parts, line);
    text_puts(text, ";\n");
  }
  text_printf(text, "  tensor last = add(x%d, x%d);\n", n - 1, pick(state, n));
}

/* A norm, something, a residual; and again: of the first tensor alone, so that a loop over such functions is one. */
static void write_residuals(struct text *text, uint64_t *state) {
  static const char *const between[] = {"tanh_of", "softmax", "gelu_tanh", "square"};
  for (int k = 0; k < 2; k++) {
    const char *x = k == 0 ? "x0" : "middle", *sum = k == 0 ? "middle" : "last";
    text_printf(text, "  tensor made%d = linear(at(s, \"l%d\"), %s(layer_norm(at(s, \"n%d\"), %s)), %d);\n", k, k,
                between[pick(state, 4)], k, x, COLUMNS);
    if (pick(state, 2) == 0)
      text_printf(text, "  tensor %s = add(%s, made%d);\n", sum, x, k);
    else
      text_printf(text, "  tensor %s = add(made%d, %s);\n", sum, k, x);
  }
}

static const char *write_model(struct arena *arena, uint64_t seed) {
  struct text text = text_in(arena);
  uint64_t state = seed;
  text_puts(&text, "#include <accel/model.h>\nstruct config { int unused; };\nconst struct config defaults = {0};\n");
  int parts = 1 + pick(&state, 3);
  for (int part = 0; part < parts; part++) {
    text_printf(&text, "\nstatic tensor part%d(scope s, tensor x0, tensor x1) {\n", part);
    if (pick(&state, 3) == 0)
      write_residuals(&text, &state);
    else
      write_body(&text, &state, 2, part);
    text_puts(&text, "  return last;\n}\n");
  }
  text_puts(&text,
            "\ntensor model(scope s, struct config c, tensor features, tensor labels) {\n  tensor x0 = features;\n");
  text_puts(&text, "  tensor x1 = linear(at(s, \"start\"), x0, dim(x0, 1));\n");
  write_body(&text, &state, 2, parts);
  text_printf(&text, "  return cross_entropy(%s(at(s, \"output\"), tanh_of(last), %d), labels);\n}\n",
              seed % 3 == 0 ? "linear_no_bias" : "linear", CLASSES);
  return text_string(&text);
}

static void check_random(uint64_t seed, struct aliasing *aliasing) {
  struct arena *arena = arena_new();
  struct job job = job_number(seed, 1 + (int)(seed % 2), seed % 3 == 0);
  check_text("random", write_model(arena, seed), seed, &job, aliasing);
  arena_free(arena);
}

static void test_random(void **state) {
  (void)state;
  struct aliasing aliasing = {0};
  const char *only = getenv("PLAN_SEED"), *count = getenv("PLAN_MODELS"), *file = getenv("PLAN_MODEL");
  if (file != NULL) {
    struct job job = job_number(0, 1, false);
    check(&(struct model_case){.file = file, .table = true}, 1, &job, &aliasing);
    return;
  }
  if (only != NULL) {
    check_random(strtoull(only, NULL, 10), &aliasing);
    return;
  }
  const char *drawn = getenv("SEED");
  uint64_t models = count != NULL ? strtoull(count, NULL, 10) : 600;
  uint64_t first = drawn != NULL ? strtoull(drawn, NULL, 10) * 1000 : 0;
  print_message("SEED %s\n", drawn != NULL ? drawn : "0");
  for (uint64_t seed = first + 1; seed <= first + models; seed++) check_random(seed, &aliasing);
  print_message("%d programs reuse memory of gradients, %d in loops apart; %d hand on operands of sums\n",
                aliasing.programs, aliasing.parted, aliasing.carrying);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples), cmocka_unit_test(test_contributions),
                                     cmocka_unit_test(test_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
