/* Operations in StableHLO: the functions of accel/model.h on random shapes, with their gradients, run by XLA in float32
 * and compared with the float64 references of the operations. Skipped without a plugin.
 *
 * SEED=N repeats a run. A kind that says how it is lowered and that no function here uses fails the test. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/ir/evaluate.h"
#include "gen/ops/support/support.h"
#include "tests/ops/cases.h"
#include "tests/xla/compare.h"

enum { MOST_KINDS = 400 };

static struct xla *xla;
static uint64_t seed;
static const struct op_kind *seen[MOST_KINDS];
static int n_seen;

static bool is_seen(const struct op_kind *kind) {
  for (int i = 0; i < n_seen; i++)
    if (seen[i] == kind) return true;
  return false;
}

static void see(const struct graph *graph) {
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct op_kind *kind = graph->regions[r]->nodes.items[i]->kind;
      if (!is_seen(kind) && n_seen < MOST_KINDS) seen[n_seen++] = kind;
    }
}

/* ---- Both sides ---- */

struct measured {
  const struct fixture *fixture;
  struct fixture_result result; /* of a function with a gradient */
  const double *y;              /* of one without */
  double loss;
};

static const double *argument(void *context, const char *name) {
  const struct fixture *fixture = ((struct measured *)context)->fixture;
  for (int i = 0; i < fixture->parameters.count; i++)
    if (strcmp(fixture->parameters.items[i].name, name) == 0) return fixture->parameters.items[i].elements;
  for (int i = 0; i < fixture->inputs.count; i++)
    if (strcmp(fixture->inputs.items[i].name, name) == 0) return fixture->inputs.items[i].elements;
  static const double no_key;
  return strcmp(name, "key") == 0 ? &no_key : NULL; /* the references draw under this key */
}

/* What the function assigns to the parameter with this name; NULL: nothing. */
static const double *assigned(const struct fixture_result *result, const char *name) {
  const struct region *entry = result->graph->entry;
  for (int i = 0; i < entry->nodes.count; i++) {
    const struct node *node = entry->nodes.items[i];
    for (int k = 0; k < node->n_outputs; k++) {
      const int input = node->kind->memory.assigns[op_described(node->kind, k)];
      if (input > 0 && strcmp(entry->parameters.items[node->inputs[input - 1]->index].path, name) == 0)
        return evaluated(result->frame, node->outputs[k]);
    }
  }
  return NULL;
}

/* The loss is the sum of the result times weights, which are the last input. */
static const double *result(void *context, const char *name, double *scale) {
  struct measured *measured = context;
  const struct fixture *fixture = measured->fixture;
  if (measured->y != NULL) return measured->y;
  if (strcmp(name, "loss") == 0) {
    const double *weights = fixture->inputs.items[fixture->inputs.count - 1].elements;
    measured->loss = 0;
    for (int64_t i = 0; i < shape_count(measured->result.y_value->shape); i++) {
      measured->loss += measured->result.y[i] * weights[i];
      *scale += fabs(measured->result.y[i] * weights[i]);
    }
    return &measured->loss;
  }
  for (int i = 0; i < fixture->parameters.count; i++)
    if (strcmp(fixture->parameters.items[i].name, name) == 0 && measured->result.gradients[i] != NULL)
      return measured->result.gradients[i];
  return assigned(&measured->result, name);
}

/* Whether all operations have a rule; one that has none is named. */
static bool run(const char *function, struct fixture *fixture, struct value *y, bool has_gradient) {
  struct measured measured = {.fixture = fixture};
  struct hlo_module module;
  struct diagnostics diags = diagnostics_in(fixture->arena);
  if (y == NULL) diag_print(&fixture->diags, stderr, false);
  assert_non_null(y);
  if (has_gradient)
    measured.result = fixture_differentiate(fixture, y);
  else
    measured.y = evaluated(fixture_run(fixture, y), y);
  const struct graph *graph = builder_graph(fixture->builder);
  if (!hlo_make(fixture->arena, graph, "test", &module, &diags)) {
    const char *said = diags.items[0].message;
    if (said[0] != '\'' || strstr(said, "' cannot be written in StableHLO: it has no rule for that") == NULL)
      fail_msg("%s: %s", function, said);
    return false;
  }
  see(graph);
  const struct sides sides = {&measured, argument, result};
  const char *wrong = compare_module(fixture->arena, xla, &module, &sides, 2e-4);
  if (wrong != NULL) print_error("%s", module.text);
  if (wrong != NULL) fail_msg("%s, SEED=%" PRIu64 ": %s", function, seed, wrong);
  return true;
}

/* The result of a case of random shapes. */
static struct value *called(struct fixture *fixture, const struct op_case *at) {
  at->arrange(fixture);
  if (strcmp(at->function, "broadcast") != 0) return fixture_call(fixture, at->function);
  return op_broadcast(fixture->builder, fixture->arguments[0].tensor, shape_of(3, (int64_t)2, (int64_t)5, (int64_t)3));
}

static void check(int number, const struct op_case *at, bool has_gradient) {
  struct fixture *fixture = fixture_new(seed + (uint64_t)number);
  run(at->function, fixture, called(fixture, at), has_gradient);
  fixture_free(fixture);
}

static void check_case(void **state) {
  const int number = (int)(intptr_t)*state;
  check(number, op_case_at(number), true);
}

static void check_index_case(void **state) {
  const int number = (int)(intptr_t)*state;
  check(number, &index_cases[number], false);
}

/* ---- What only passes make ---- */

/* Numbers that 16 bits hold. */
static struct value *short_numbers(struct fixture *fixture) {
  struct fixture_tensor *x = fixture_fixed(fixture, shape_of(2, (int64_t)3, (int64_t)5));
  for (int i = 0; i < 15; i++) x->elements[i] = (double)(fixture_random(fixture, 32) - 16) / 8;
  return fixture->arguments[fixture->count - 1].tensor;
}

/* Products in 16 bits are sums in float32. */
static struct value *bits16(struct fixture *fixture, enum dtype dtype) {
  struct value *x = builder_cast(fixture->builder, short_numbers(fixture), dtype);
  struct value *y = op_matmul(fixture->builder, x, op_matrix_transpose(fixture->builder, x));
  return builder_cast(fixture->builder, y, DTYPE_FLOAT32);
}

static struct value *in_bfloat16(struct fixture *fixture) {
  struct value *x = builder_cast(fixture->builder, short_numbers(fixture), DTYPE_BFLOAT16);
  return builder_cast(fixture->builder, op_add(fixture->builder, x, x), DTYPE_FLOAT32);
}

static struct value *in_float16(struct fixture *fixture) {
  return bits16(fixture, DTYPE_FLOAT16);
}

static struct value *predicted(struct fixture *fixture) {
  struct value *x = short_numbers(fixture);
  return builder_unary(fixture->builder, "predict_class", x);
}

static struct value *target(struct fixture *fixture) {
  struct value *x = short_numbers(fixture);
  const struct attribute attributes[] = {attribute_int("last", 1), attribute_int("ignore", -1)};
  return builder_op(fixture->builder, "cast_index_target", &x, 1, attributes, 2);
}

static struct value *over_logits(struct fixture *fixture) {
  const int64_t rows = 6, depth = 4, classes = 7;
  fixture_tensor(fixture, shape_of(3, (int64_t)2, rows / 2, depth), AROUND_ZERO);
  fixture_tensor(fixture, shape_of(2, depth, classes), AROUND_ZERO);
  fixture_tokens(fixture, shape_of(2, (int64_t)2, rows / 2), classes);
  fixture->inputs.items[0].elements[1] = -1;
  struct value *inputs[3];
  for (int i = 0; i < 3; i++) inputs[i] = fixture->arguments[i].tensor;
  const struct attribute attributes[] = {attribute_int("ignore", -1), attribute_real("smoothing", 0.1),
                                         attribute_real("z", 0.01), attribute_int("rows", 2),
                                         attribute_int("pitch", 8)};
  return builder_op(fixture->builder, "linear_cross_entropy", inputs, 3, attributes, 5);
}

static struct value *drawn(struct fixture *fixture, const char *kind, int64_t bound) {
  const struct attribute attributes[] = {attribute_ints("dims", shape_of(2, INT64_C(3), INT64_C(7))),
                                         attribute_int("site", 2), attribute_int("bound", bound)};
  return builder_op(fixture->builder, kind, NULL, 0, attributes, bound > 0 ? 3 : 2);
}

static struct value *uniform(struct fixture *fixture) {
  return drawn(fixture, "random_uniform", 0);
}

static struct value *normal(struct fixture *fixture) {
  return drawn(fixture, "random_normal", 0);
}

static struct value *integers(struct fixture *fixture) {
  return drawn(fixture, "random_int", 1000003);
}

static const struct {
  const char *name;
  struct value *(*make)(struct fixture *fixture);
  bool has_gradient;
} made[] = {{"bfloat16", in_bfloat16, false},    {"float16", in_float16, false},
            {"predict_class", predicted, false}, {"cast_target", target, false},
            {"random_uniform", uniform, false},  {"random_normal", normal, false},
            {"random_int", integers, false},     {"linear_cross_entropy", over_logits, true}};

static void check_made(void **state) {
  const int number = (int)(intptr_t)*state;
  struct fixture *fixture = fixture_new(seed);
  assert_true(run(made[number].name, fixture, made[number].make(fixture), made[number].has_gradient));
  fixture_free(fixture);
}

/* ---- All kinds ---- */

/* Draws shapes until a case has the kind, such as a roll by more than nothing, and compares that. */
static bool try_again(const struct op_kind *kind) {
  for (int round = 1; round < 20; round++)
    for (int i = 0; op_case_at(i) != NULL; i++) {
      struct fixture *fixture = fixture_new(seed + (uint64_t)(1000 * round + i));
      struct value *y = called(fixture, op_case_at(i));
      const bool has = y != NULL && y->producer != NULL && y->producer->kind == kind;
      if (has) run(op_case_at(i)->function, fixture, y, true);
      fixture_free(fixture);
      if (has) return true;
    }
  return false;
}

/* Of programs that write texts, position by position: test_texts.py compares these. */
static bool is_of_texts(const struct op_kind *kind) {
  static const char *const names[] = {
      "attention_cached", "conv_cache", "conv_cache_from",  "cumsum_incremental",
      "dynamic_slice",    "keep",       "lstm_incremental", "selective_scan_incremental",
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(kind->name, names[i]) == 0) return true;
  return false;
}

static void check_seen(void **state) {
  (void)state;
  int missing = 0;
  for (int f = 0; f < op_file_count; f++)
    for (int k = 0; op_files[f]->kinds != NULL && op_files[f]->kinds[k] != NULL; k++) {
      const struct op_kind *kind = op_files[f]->kinds[k];
      const bool lowered = kind->lower.operation != NULL || kind->lower.write != NULL;
      if (!lowered || is_of_texts(kind) || is_seen(kind) || try_again(kind)) continue;
      print_error("# no function here makes '%s', which is lowered\n", kind->name);
      missing++;
    }
  assert_int_equal(missing, 0);
}

static void add(struct CMUnitTest *tests, int *count, const char *name, void (*run)(void **state), int number) {
  tests[(*count)++] = (struct CMUnitTest){.name = name, .test_func = run, .initial_state = (void *)(intptr_t)number};
}

int main(void) {
  static struct CMUnitTest tests[400];
  const char *wanted = getenv("SEED");
  int count = 0;
  seed = wanted != NULL ? strtoull(wanted, NULL, 10) : 1;
  xla = open_plugin();
  if (xla == NULL) return 77;
  for (int i = 0; op_case_at(i) != NULL; i++) add(tests, &count, op_case_at(i)->function, check_case, i);
  for (int i = 0; index_cases[i].function != NULL; i++)
    add(tests, &count, index_cases[i].function, check_index_case, i);
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) add(tests, &count, made[i].name, check_made, (int)i);
  add(tests, &count, "all kinds that are lowered", check_seen, 0);
  const int failed = _cmocka_run_group_tests("lowering", tests, (size_t)count, NULL, NULL);
  rt_xla_close(xla);
  return failed;
}
