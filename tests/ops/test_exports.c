/* The operators of ONNX that each kind of operation is made of.
 *
 * usage: test_exports [--print SEED]
 * Without arguments: every kind with a rule (op_kind.onnx) has a case. --print writes every case as a line of JSON, its
 * graph of ONNX among it, for test_onnx.py, which computes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/ir/evaluate.h"
#include "gen/ir/op.h"
#include "gen/onnx/make.h"
#include "gen/ops/support/support.h"
#include "tests/ops/cases.h"

enum { SHAPES = 6 };

/* The functions with a gradient and those without, by number; NULL after the last one. */
static const struct op_case *case_at(int number) {
  int differentiable = 0, others = 0;
  while (op_case_at(differentiable) != NULL) differentiable++;
  while (index_cases[others].function != NULL) others++;
  if (number < differentiable) return op_case_at(number);
  return number < differentiable + others ? &index_cases[number - differentiable] : NULL;
}

static struct fixture *arranged(uint64_t seed, int number, int round) {
  struct fixture *fixture = fixture_new(seed + (uint64_t)number * 1000 + (uint64_t)round);
  case_at(number)->arrange(fixture);
  return fixture;
}

/* The result of a case. An operation that no function is called like is called by itself. */
static struct value *called(struct fixture *fixture, const char *function) {
  struct value *y = NULL;
  if (strcmp(function, "broadcast") != 0)
    y = fixture_call(fixture, function);
  else
    y = op_broadcast(fixture->builder, fixture->arguments[0].tensor, shape_of(3, (int64_t)2, (int64_t)5, (int64_t)3));
  if (y == NULL) diag_print(&fixture->diags, stderr, false);
  return y;
}

/* ---- Every rule has a case ---- */

static bool has_rule(const struct op_kind *kind) {
  return kind->onnx.operator!= NULL || kind->onnx.write != NULL;
}

static bool has_node(const struct region *region, const struct op_kind *kind) {
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i]->kind == kind) return true;
  return false;
}

static bool is_met_by(const struct op_kind *kind, int number, int round) {
  struct fixture *fixture = arranged(1, number, round);
  const struct value *y = called(fixture, case_at(number)->function);
  assert_non_null(y);
  const bool met = has_node(y->region, kind);
  fixture_free(fixture);
  return met;
}

static bool is_met(const struct op_kind *kind) {
  for (int round = 0; round < SHAPES; round++)
    for (int i = 0; case_at(i) != NULL; i++)
      if (is_met_by(kind, i, round)) return true;
  return false;
}

static void rules_have_cases(void **state) {
  (void)state;
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->kinds != NULL && op_files[i]->kinds[k] != NULL; k++) {
      const struct op_kind *kind = op_files[i]->kinds[k];
      if (has_rule(kind) && !is_met(kind)) fail_msg("no case has %s, which has a rule", kind->name);
    }
}

/* ---- Printing ---- */

/* One graph stands for all sizes. */
static bool make(struct fixture *fixture, struct onnx_graph *made) {
  static const struct onnx_sizes sizes = {.batch = {1, 1, 1, 1, 1}, .sequence = {1, 1, 1, 1, 1}};
  static const char *const outputs[] = {"y"};
  const struct graph *graph = builder_graph(fixture->builder), *graphs[ONNX_SIZES];
  struct onnx_input *inputs = arena_alloc(fixture->arena, ((size_t)fixture->inputs.count + 1) * sizeof *inputs);
  for (int i = 0; i < fixture->inputs.count; i++) inputs[i].name = fixture->inputs.items[i].name;
  for (int i = 0; i < ONNX_SIZES; i++) graphs[i] = graph;
  return onnx_make(fixture->arena, &sizes, graphs, inputs, outputs, 1, made, &fixture->diags);
}

static void print_case(struct fixture *fixture, const char *function, const struct value *y, const double *elements) {
  struct onnx_graph made;
  printf("{\"function\": \"%s\", ", function);
  if (make(fixture, &made)) {
    printf("\"graph\": \"");
    for (size_t i = 0; i < made.fields.length; i++) printf("%02x", (unsigned)(uint8_t)made.fields.bytes[i]);
    printf("\", \"weights\": [");
    for (int i = 0; i < made.weights.count; i++) printf("%s\"%s\"", i > 0 ? ", " : "", made.weights.items[i].name);
    printf("], ");
  } else {
    printf("\"refused\": \"%s\", ", fixture->diags.items[0].message);
  }
  printf("\"tensors\": {");
  for (int i = 0; i < fixture->parameters.count + fixture->inputs.count; i++) {
    const struct fixture_tensor *tensor = i < fixture->parameters.count
                                              ? &fixture->parameters.items[i]
                                              : &fixture->inputs.items[i - fixture->parameters.count];
    printf("%s", i > 0 ? ", " : "");
    fixture_print_tensor(stdout, tensor->name, tensor->shape, tensor->elements);
  }
  printf("}, ");
  fixture_print_tensor(stdout, "y", y->shape, elements);
  printf("}\n");
}

static int print_cases(uint64_t seed) {
  for (int i = 0; case_at(i) != NULL; i++)
    for (int round = 0; round < SHAPES; round++) {
      struct fixture *fixture = arranged(seed, i, round);
      struct value *y = called(fixture, case_at(i)->function);
      if (y == NULL) return 1;
      const struct frame_data *frame = fixture_run(fixture, y);
      print_case(fixture, case_at(i)->function, y, evaluated(frame, y));
      fixture_free(fixture);
    }
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rules_have_cases)};
  if (argc == 3 && strcmp(argv[1], "--print") == 0) return print_cases(strtoull(argv[2], NULL, 10));
  return cmocka_run_group_tests(tests, NULL, NULL);
}
