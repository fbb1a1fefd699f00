/* What operations say to passes: views and their inverses, strides that kernels take, parts, sums of slices; and whole
 * graphs of regions and loops, evaluated and differentiated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gen/ops/support/support.h"
#include "tests/ops/fixture.h"

/* ---- The table ---- */

static void kinds_are_complete(void **state) {
  (void)state;
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->kinds != NULL && op_files[i]->kinds[k] != NULL; k++) {
      const struct op_kind *kind = op_files[i]->kinds[k];
      bool complete =
          kind->reference.evaluate != NULL || kind->kernel.updates; /* what an update does depends on what it keeps */
      bool shaped = kind->infer != NULL || kind->fusion.plain != NULL;
      if (!shaped || !complete) fail_msg("%s has no shape rule or no reference", kind->name);
      if (kind->class == OP_VIEW && (kind->layout.view == NULL || kind->layout.unview == NULL))
        fail_msg("%s: no view", kind->name);
      if (kind->class == OP_PARTS && kind->layout.part == NULL) fail_msg("%s: no parts", kind->name);
      if (op_kind_find(kind->name) != kind) fail_msg("two kinds are called %s", kind->name);
    }
}

static void functions_are_unique(void **state) {
  (void)state;
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->functions != NULL && op_files[i]->functions[k].name != NULL; k++)
      if (op_function_find(op_files[i]->functions[k].name) != &op_files[i]->functions[k])
        fail_msg("two functions are called %s", op_files[i]->functions[k].name);
}

/* ---- Views ---- */

static int64_t offset_of(struct shape shape, const int64_t *strides, int64_t i) {
  int64_t offset = 0;
  for (int d = shape.rank - 1; d >= 0; d--) {
    offset += i % shape.dim[d] * strides[d];
    i /= shape.dim[d];
  }
  return offset;
}

/* The strides of a tensor that is in a larger buffer with its dimensions in a random order and gaps between. */
static void random_strides(struct fixture *fixture, struct shape shape, int64_t *strides) {
  int order[MAX_RANK];
  for (int i = 0; i < shape.rank; i++) order[i] = i;
  for (int i = shape.rank - 1; i > 0; i--) {
    int k = fixture_random(fixture, 2) == 0 ? (int)fixture_random(fixture, i + 1) : i, kept = order[i];
    order[i] = order[k];
    order[k] = kept;
  }
  int64_t stride = 1;
  for (int i = shape.rank - 1; i >= 0; i--) {
    strides[order[i]] = stride;
    stride *= shape.dim[order[i]] + (fixture_random(fixture, 4) == 0 ? 2 : 0);
  }
}

/* The view must show at each offset the element that the reference puts there. The input's elements are the positions
 * where they are, so that an element says where it came from. Returns whether there was a view. */
static bool check_view(const struct node *node, const int64_t *in_strides) {
  struct arena *arena = arena_new();
  struct shape x = node->inputs[0]->shape, y = node->outputs[0]->shape;
  double *in = arena_alloc(arena, (size_t)shape_count(x) * sizeof *in);
  double *out = arena_alloc(arena, (size_t)shape_count(y) * sizeof *out);
  for (int64_t i = 0; i < shape_count(x); i++) in[i] = (double)offset_of(x, in_strides, i);
  node->kind->reference.evaluate(node, (const double *const[]){in}, (double *const[]){out});
  int64_t offset, strides[MAX_RANK], back[MAX_RANK];
  bool possible = node->kind->layout.view(node, in_strides, &offset, strides);
  for (int64_t i = 0; i < shape_count(y) && possible; i++)
    assert_int_equal((int64_t)out[i], offset + offset_of(y, strides, i));
  if (possible && node->kind->layout.unview(node, strides, back))
    for (int d = 0; d < x.rank; d++)
      if (x.dim[d] != 1) assert_int_equal(back[d], in_strides[d]);
  arena_free(arena);
  return possible;
}

static void views_show_the_reference(void **state) {
  (void)state;
  int possible = 0;
  for (uint64_t seed = 0; seed < 400; seed++) {
    struct fixture *fixture = fixture_new(seed);
    struct shape shape = fixture_shape(fixture, 3, 800), to = {0};
    to.dim[0] = shape.dim[0] * (seed % 3 == 0 ? shape.dim[1] : 1);
    to.dim[1] = seed % 3 == 0 ? 1 : shape.dim[1] * shape.dim[2];
    to.dim[2] = seed % 3 == 0 ? shape.dim[2] : 1;
    to.rank = 3;
    struct value *x = fixture_tensor(fixture, shape, AROUND_ZERO);
    int64_t strides[MAX_RANK], dense[MAX_RANK];
    random_strides(fixture, shape, strides);
    shape_dense_strides(shape, dense);
    struct value *views[] = {op_reshape(fixture->builder, x, to), op_transpose(fixture->builder, x, 0, 2),
                             op_slice(fixture->builder, x, 1, shape.dim[1] / 2, 1)};
    for (int i = 0; i < 3; i++) {
      if (views[i] == x) continue;
      assert_true(check_view(views[i]->producer, dense));
      possible += check_view(views[i]->producer, strides);
    }
    fixture_free(fixture);
  }
  assert_true(possible > 800 && possible < 1200); /* transposes and slices always, reshapes at times */
}

static void parts_lie_in_the_whole(void **state) {
  (void)state;
  struct fixture *fixture = fixture_new(1);
  struct shape shape = shape_of(3, (int64_t)2, (int64_t)3, (int64_t)4);
  struct value *inputs[] = {fixture_tensor(fixture, shape, AROUND_ZERO), fixture_tensor(fixture, shape, AROUND_ZERO)};
  struct attribute axis = attribute_int("axis", 1);
  struct value *y = builder_op(fixture->builder, "concat", inputs, 2, &axis, 1);
  int64_t out[] = {24, 4, 1}, offset, in[MAX_RANK];
  assert_true(y->producer->kind->layout.part(y->producer, 1, out, &offset, in));
  assert_int_equal(offset, 12);
  for (int i = 0; i < 3; i++) assert_int_equal(in[i], out[i]);
  fixture_free(fixture);
}

/* ---- Strides that kernels take ---- */

struct strides_case {
  bool output;
  int index;
  int64_t strides[4];
  bool accepted;
};

static void check_strides(const struct node *node, const struct strides_case *cases, int count) {
  for (int i = 0; i < count; i++)
    if (node->kind->layout.accepts(node, cases[i].output, cases[i].index, cases[i].strides) != cases[i].accepted)
      fail_msg("%s: strides %d", node->kind->name, i);
}

static struct node *matmul(struct fixture *fixture, struct shape a, struct shape b) {
  struct value *left = fixture_tensor(fixture, a, AROUND_ZERO), *right = fixture_tensor(fixture, b, AROUND_ZERO);
  return builder_binary(fixture->builder, "matmul", left, right)->producer;
}

static void matmuls_take_matrices(void **state) {
  (void)state;
  static const struct strides_case one[] = {
      {false, 0, {15, 5, 1}, true},   /* dense: 6 rows of 5 */
      {false, 0, {24, 8, 1}, true},   /* rows with gaps */
      {false, 0, {30, 8, 1}, false},  /* rows that are not evenly spaced */
      {false, 0, {3, 1, 6}, true},    /* columns of 6 rows */
      {false, 0, {15, 1, 3}, false},  /* transposed one by one */
      {false, 0, {0, 5, 1}, false},   /* one matrix repeated */
      {false, 0, {30, 10, 2}, false}, /* no stride is 1 */
      {false, 1, {7, 1}, true},       {false, 1, {1, 5}, true}, {false, 1, {6, 1}, false}, /* rows that overlap */
      {true, 0, {3, 1, 6}, true},
  };
  static const struct strides_case batch[] = {
      {false, 0, {15, 5, 1}, true}, {false, 0, {100, 1, 3}, true}, {false, 1, {0, 7, 1}, false},
      {false, 1, {7, 14, 1}, true}, {true, 0, {1, 2, 6}, false},
  };
  struct fixture *fixture = fixture_new(1);
  struct shape a = shape_of(3, (int64_t)2, (int64_t)3, (int64_t)5);
  check_strides(matmul(fixture, a, shape_of(2, (int64_t)5, (int64_t)7)), one, sizeof one / sizeof one[0]);
  check_strides(matmul(fixture, a, shape_of(3, (int64_t)2, (int64_t)5, (int64_t)7)), batch,
                sizeof batch / sizeof batch[0]);
  fixture_free(fixture);
}

static void attention_takes_rows(void **state) {
  (void)state;
  static const struct strides_case cases[] = {
      {false, 0, {60, 5, 15, 1}, true}, {false, 1, {0, 5, 15, 1}, true}, {false, 2, {60, 20, 1, 4}, false},
      {true, 0, {60, 5, 15, 1}, true},  {true, 1, {12, 4, 1}, true},     {true, 1, {12, 1, 3}, false},
  };
  struct fixture *fixture = fixture_new(1);
  for (int i = 0; i < 3; i++)
    fixture_tensor(fixture, shape_of(4, (int64_t)2, (int64_t)3, (int64_t)4, (int64_t)5), AROUND_ZERO);
  fixture_int(fixture, 1);
  check_strides(fixture_call(fixture, "attention")->producer, cases, sizeof cases / sizeof cases[0]);
  fixture_free(fixture);
}

/* ---- Sums of slices ---- */

/* The gradients of the thirds `which` of x, summed by the kind. */
static struct value *sum_of_thirds(struct fixture *fixture, const int *which, int n) {
  struct value *contributions[4];
  for (int i = 0; i < n; i++) {
    struct value *dy = fixture_tensor(fixture, shape_of(2, (int64_t)2, (int64_t)5), AROUND_ZERO);
    struct attribute attributes[] = {attribute_int("axis", 1), attribute_int("start", 5 * which[i]),
                                     attribute_int("size", 15)};
    contributions[i] = builder_op(fixture->builder, "slice_backward", &dy, 1, attributes, 3);
  }
  return op_kind_find("slice_backward")->sum(fixture->builder, contributions, n);
}

static void slices_that_tile_are_concatenated(void **state) {
  (void)state;
  struct fixture *fixture = fixture_new(1);
  struct value *whole = sum_of_thirds(fixture, (const int[]){2, 0, 1}, 3);
  assert_non_null(whole);
  assert_string_equal(whole->producer->kind->name, "concat");
  assert_int_equal(whole->producer->inputs[0]->index, 1); /* the first third was the second one given */
  assert_null(sum_of_thirds(fixture, (const int[]){0, 1}, 2));
  assert_null(sum_of_thirds(fixture, (const int[]){0, 1, 1}, 3));
  fixture_free(fixture);
}

/* ---- Starts of parameters ---- */

static struct initializer start_of(struct fixture *fixture, struct initializer given, const char *function, int index) {
  fixture->arguments[0] =
      (struct argument){.kind = ARGUMENT_SCOPE, .scope = builder_scope_init(fixture->builder, fixture->root, given)};
  fixture->count = 1;
  fixture_tensor(fixture, shape_of(2, (int64_t)3, (int64_t)4), AROUND_ZERO);
  fixture_int(fixture, 5);
  struct value *y = fixture_call(fixture, function);
  assert_non_null(y);
  return y->region->parameters.items[1 + index].init; /* after x */
}

static void parameters_start_as_pytorch(void **state) {
  (void)state;
  struct initializer none = {0}, normal = {INIT_NORMAL, 0, 0.02};
  struct {
    struct initializer given;
    const char *function;
    int index;
    struct initializer start;
  } cases[] = {
      {none, "linear", 0, {INIT_UNIFORM, -0.5, 0.5}},
      {none, "linear", 1, {INIT_UNIFORM, -0.5, 0.5}},
      {normal, "linear", 0, normal},
      {normal, "linear", 1, {INIT_ZEROS, 0, 0}},
      {normal, "layer_norm", 0, {INIT_ONES, 0, 0}},
      {normal, "layer_norm", 1, {INIT_ZEROS, 0, 0}},
      {normal, "rms_norm", 0, {INIT_ONES, 0, 0}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct fixture *fixture = fixture_new(1);
    struct initializer start = start_of(fixture, cases[i].given, cases[i].function, cases[i].index);
    assert_int_equal(start.kind, cases[i].start.kind);
    assert_true(start.a == cases[i].start.a && start.b == cases[i].start.b);
    fixture_free(fixture);
  }
}

/* ---- Costs ---- */

static void matmuls_and_attention_cost_what_they_multiply(void **state) {
  (void)state;
  struct fixture *fixture = fixture_new(1);
  struct node *node =
      matmul(fixture, shape_of(3, (int64_t)2, (int64_t)3, (int64_t)5), shape_of(2, (int64_t)5, (int64_t)7));
  assert_true(op_flops(node) == 2.0 * 2 * 3 * 5 * 7);
  fixture->count = 0;
  for (int i = 0; i < 3; i++)
    fixture_tensor(fixture, shape_of(4, (int64_t)2, (int64_t)3, (int64_t)4, (int64_t)5), AROUND_ZERO);
  fixture_int(fixture, 1);
  node = fixture_call(fixture, "attention")->producer;
  assert_true(op_flops(node) == 4.0 * 2 * 3 * 4 * 4 * 5 / 2);
  fixture_free(fixture);
}

/* ---- Whole graphs ---- */

/* x = x + gelu(linear(h.i, x)), in a region of its own. */
static struct value *block(struct fixture *fixture, int i, struct value *x) {
  struct scope *scope = builder_scope(fixture->builder, fixture->root, arena_printf(fixture->arena, "h.%d", i)), *inner;
  struct value *formal;
  struct location here = {0};
  builder_begin_region(fixture->builder, "block", here, here, &scope, 1, &x, 1, &inner, &formal);
  struct argument arguments[] = {{.kind = ARGUMENT_SCOPE, .scope = inner},
                                 {.kind = ARGUMENT_TENSOR, .tensor = formal},
                                 {.kind = ARGUMENT_INT, .integer = formal->shape.dim[1]}};
  struct value *y = builder_call(fixture->builder, op_function_find("linear"), arguments, 3);
  y = builder_binary(fixture->builder, "add", formal, builder_unary(fixture->builder, "gelu", y));
  builder_end_region(fixture->builder, &y, 1, &y);
  return y;
}

static void loops_of_regions_have_gradients(void **state) {
  (void)state;
  struct fixture *fixture = fixture_new(7);
  struct value *x = fixture_tensor(fixture, shape_of(2, (int64_t)3, (int64_t)5), AROUND_ZERO);
  builder_loop_begin(fixture->builder);
  for (int i = 0; i < 3; i++) {
    builder_loop_iteration(fixture->builder);
    x = block(fixture, i, x);
  }
  builder_loop_end(fixture->builder);
  struct fixture_result result = fixture_measure(fixture, builder_unary(fixture->builder, "tanh", x));
  const struct node *call = result.graph->entry->nodes.items[0];
  assert_int_equal(call->call->count, 3);
  assert_int_equal(fixture->parameters.count, 1 + 2 * 3);
  for (int i = 0; i < fixture->parameters.count; i++) assert_non_null(result.gradients[i]);
  if (!(result.worst < 1e-7)) fail_msg("the gradient of %s is %g off", result.worst_name, result.worst);
  fixture_free(fixture);
}

/* Kinds that no function builds by itself. */
static void copies_and_broadcasts_have_gradients(void **state) {
  (void)state;
  struct fixture *fixture = fixture_new(9);
  struct value *x = fixture_tensor(fixture, shape_of(3, (int64_t)1, (int64_t)3, (int64_t)1), AROUND_ZERO);
  x = builder_unary(fixture->builder, "copy", x);
  x = op_broadcast(fixture->builder, x, shape_of(4, (int64_t)5, (int64_t)7, (int64_t)3, (int64_t)2));
  struct fixture_result result = fixture_measure(fixture, x);
  if (!(result.worst < 1e-7)) fail_msg("the gradient of %s is %g off", result.worst_name, result.worst);
  fixture_free(fixture);
}

/* The thirds of x by split, multiplied: their gradients meet again in one concat. */
static void split_parts_have_gradients(void **state) {
  (void)state;
  struct fixture *fixture = fixture_new(8);
  struct value *x = fixture_tensor(fixture, shape_of(2, (int64_t)3, (int64_t)15), AROUND_ZERO), *y = NULL;
  for (int i = 0; i < 3; i++) {
    struct value *part = op_slice(fixture->builder, x, 1, 5 * i, 5);
    y = y == NULL ? part : builder_binary(fixture->builder, "mul", y, part);
  }
  struct fixture_result result = fixture_measure(fixture, y);
  if (!(result.worst < 1e-7)) fail_msg("the gradient of %s is %g off", result.worst_name, result.worst);
  fixture_free(fixture);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kinds_are_complete),
      cmocka_unit_test(functions_are_unique),
      cmocka_unit_test(views_show_the_reference),
      cmocka_unit_test(parts_lie_in_the_whole),
      cmocka_unit_test(matmuls_take_matrices),
      cmocka_unit_test(attention_takes_rows),
      cmocka_unit_test(slices_that_tile_are_concatenated),
      cmocka_unit_test(parameters_start_as_pytorch),
      cmocka_unit_test(matmuls_and_attention_cost_what_they_multiply),
      cmocka_unit_test(loops_of_regions_have_gradients),
      cmocka_unit_test(copies_and_broadcasts_have_gradients),
      cmocka_unit_test(split_parts_have_gradients),
  };
  return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
