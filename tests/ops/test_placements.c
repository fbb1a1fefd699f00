/* What operations say of tensors that ranks divide (op_ranks.place, op_ranks.shorten): the reference of each rank's
 * part of the operands gives its part of the result. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/ir/evaluate.h"
#include "gen/ir/op.h"
#include "gen/ops/support/support.h"
#include "tests/ops/cases.h"

enum { ROUNDS = 30 };

/* Two or three ranks divide most of these, also in three blocks. */
static const int64_t even_extents[] = {1, 2, 6, 12, 18};

/* ---- Parts ---- */

/* What is asked of a node, and how its operands are then placed: its inputs, then output 0. */
struct trial {
  const char *function; /* that makes the node */
  const struct node *node;
  int seed;
  int64_t ranks;
  struct placement split, *placements;
};

static void fail_trial(const struct trial *trial, const char *what) {
  fail_msg("%s of %s, operand %d, dimension %d, %" PRId64 " blocks, %" PRId64 " ranks: %s", trial->node->kind->name,
           trial->function, trial->seed, trial->split.dim, trial->split.blocks, trial->ranks, what);
}

/* What rank `rank` has of a tensor that is the same on all ranks or split. */
static double *part_of(struct arena *arena, struct placement placement, struct shape shape, int64_t ranks, int64_t rank,
                       const double *whole) {
  struct shape own = placement_part(placement, shape, ranks);
  int64_t count = shape_count(own), pieces = 1, length = count;
  double *part = arena_alloc(arena, (size_t)count * sizeof *part);
  bool split = placement.form == PLACED_SPLIT;
  if (split) pieces = shape_product(shape, 0, placement.dim) * placement.blocks;
  if (split) length /= pieces;
  for (int64_t p = 0; p < pieces; p++)
    memcpy(part + p * length, whole + (split ? p * ranks + rank : p) * length, (size_t)length * sizeof *part);
  return part;
}

static struct value *value_of_rank(struct arena *arena, const struct trial *trial, int operand) {
  struct value *value = arena_alloc(arena, sizeof *value);
  *value = *op_operand(trial->node, operand);
  value->shape = placement_part(trial->placements[operand], value->shape, trial->ranks);
  return value;
}

static struct node *node_of_rank(struct arena *arena, const struct trial *trial, int64_t rank) {
  const struct node *whole = trial->node;
  struct node *node = arena_alloc(arena, sizeof *node);
  *node = *whole;
  node->inputs = arena_alloc(arena, ((size_t)whole->n_inputs + 1) * sizeof *node->inputs);
  node->outputs = arena_alloc(arena, (size_t)whole->n_outputs * sizeof *node->outputs);
  for (int i = 0; i < whole->n_inputs; i++) node->inputs[i] = value_of_rank(arena, trial, i);
  for (int i = 0; i < whole->n_outputs; i++) {
    node->outputs[i] =
        i == 0 ? value_of_rank(arena, trial, whole->n_inputs) : arena_alloc(arena, sizeof **node->outputs);
    if (i > 0) *node->outputs[i] = *whole->outputs[i];
  }
  if (!op_shorten(arena, node, trial->placements, trial->ranks, 0)) fail_trial(trial, "the result has another shape");
  if (node->kind->ranks.part_axis != NULL) node->attributes[node->n_attributes++] = attribute_int("rank", rank);
  return node;
}

/* Output 0 of a rank's node. */
static double *result_of_rank(struct arena *arena, const struct trial *trial, const struct frame_data *frame,
                              int64_t rank) {
  const struct node *node = node_of_rank(arena, trial, rank);
  const double **inputs = arena_alloc(arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  double **outputs = arena_alloc(arena, (size_t)node->n_outputs * sizeof *outputs);
  for (int i = 0; i < node->n_inputs; i++) {
    const struct value *whole = trial->node->inputs[i];
    if (trial->placements[i].form == PLACED_PARTIAL) fail_trial(trial, "an input is a partial sum");
    inputs[i] = part_of(arena, trial->placements[i], whole->shape, trial->ranks, rank, evaluated(frame, whole));
  }
  for (int i = 0; i < node->n_outputs; i++)
    outputs[i] = arena_alloc(arena, (size_t)shape_count(node->outputs[i]->shape) * sizeof **outputs);
  node->kind->reference.evaluate(node, inputs, outputs);
  return outputs[0];
}

static bool near(double a, double b) {
  return a == b || fabs(a - b) <= 1e-11 * (1 + fabs(b));
}

static void compare(const struct trial *trial, const double *found, const double *expected, int64_t count,
                    const char *what) {
  for (int64_t i = 0; i < count; i++)
    if (!near(found[i], expected[i])) fail_trial(trial, what);
}

/* Whether a target counts for nothing: then ranks may have unequal numbers of those that count. */
static bool leaves_out(const struct node *node, const struct frame_data *frame) {
  for (int i = 0; i < node->n_inputs && node->kind->index.ignores; i++) {
    const double *elements = evaluated(frame, node->inputs[i]);
    for (int64_t k = 0; node->inputs[i]->dtype == DTYPE_INT32 && k < shape_count(node->inputs[i]->shape); k++)
      if ((int64_t)elements[k] == node_int(node, "ignore")) return true;
  }
  return false;
}

static void check_trial(const struct trial *trial, const struct frame_data *frame) {
  struct arena *arena = arena_new();
  const struct value *y = trial->node->outputs[0];
  const struct placement placed = trial->placements[trial->node->n_inputs];
  const double *whole = evaluated(frame, y);
  int64_t count = shape_count(placement_part(placed, y->shape, trial->ranks));
  double *sum = arena_alloc(arena, (size_t)count * sizeof *sum);
  for (int64_t rank = 0; rank < trial->ranks; rank++) {
    const double *result = result_of_rank(arena, trial, frame, rank);
    for (int64_t i = 0; i < count; i++) sum[i] += result[i];
    if (placed.form == PLACED_WHOLE || placed.form == PLACED_SPLIT)
      compare(trial, result, part_of(arena, placed, y->shape, trial->ranks, rank, whole), count,
              "a rank's result is not its part of the whole");
  }
  if (placed.form == PLACED_PARTIAL) compare(trial, sum, whole, count, "the ranks' results do not add up to the whole");
  for (int64_t i = 0; i < count; i++) sum[i] /= (double)trial->ranks;
  if (placed.form == PLACED_MEAN && !leaves_out(trial->node, frame))
    compare(trial, sum, whole, count, "the mean of the ranks' results is not the whole");
  arena_free(arena);
}

/* ---- What was tried ---- */

/* A split that ranks could make. */
struct accepted {
  const char *kind;
  int operand, dim, blocks;
};
static struct accepted accepted[1200];
static int n_accepted;

static bool is_accepted(const struct accepted *split) {
  for (int i = 0; i < n_accepted; i++)
    if (strcmp(accepted[i].kind, split->kind) == 0 && accepted[i].operand == split->operand &&
        accepted[i].dim == split->dim && accepted[i].blocks == split->blocks)
      return true;
  return false;
}

static void note_accepted(const struct trial *trial) {
  const struct accepted split = {trial->node->kind->name, trial->seed, trial->split.dim, (int)trial->split.blocks};
  if (is_accepted(&split)) return;
  assert_true((size_t)n_accepted < sizeof accepted / sizeof accepted[0]);
  accepted[n_accepted++] = split;
}

/* ---- Nodes ---- */

/* What another operation stands for is for tests/ops/test_vocabulary.c. */
static void check_split(struct fixture *fixture, struct trial *trial, const struct frame_data *frame) {
  const struct node *node = trial->node;
  if (!placement_fits(trial->split, op_operand(node, trial->seed)->shape, trial->ranks)) return;
  trial->placements = arena_alloc(fixture->arena, ((size_t)node->n_inputs + 1) * sizeof *trial->placements);
  trial->placements[trial->seed] = trial->split;
  if (!op_place(node, trial->seed, trial->ranks, trial->placements)) return;
  if (node->kind->ranks.over_parts != NULL && trial->placements[node->n_inputs].form != PLACED_SPLIT) return;
  if (!placement_equal(trial->placements[trial->seed], trial->split)) fail_trial(trial, "the operand is otherwise");
  check_trial(trial, frame);
  note_accepted(trial);
}

static void check_node(struct fixture *fixture, const char *function, const struct node *node,
                       const struct frame_data *frame) {
  struct trial trial = {.function = function, .node = node};
  for (trial.seed = 0; trial.seed <= node->n_inputs; trial.seed++)
    for (int dim = 0; dim < op_operand(node, trial.seed)->shape.rank; dim++)
      for (int64_t blocks = 1; blocks <= 3; blocks++)
        for (trial.ranks = 2; trial.ranks <= 3; trial.ranks++) {
          trial.split = placement_split(dim, blocks);
          check_split(fixture, &trial, frame);
        }
}

/* All nodes that lead to y; frees the fixture. */
static void check_nodes(struct fixture *fixture, const char *function, struct value *y) {
  if (y == NULL) diag_print(&fixture->diags, stderr, false);
  assert_non_null(y);
  const struct node_list *nodes = &y->region->nodes;
  const struct frame_data *frame = fixture_run(fixture, y);
  for (int i = 0; i < nodes->count; i++)
    if (nodes->items[i]->call == NULL) check_node(fixture, function, nodes->items[i], frame);
  fixture_free(fixture);
}

static struct fixture *even_fixture(uint64_t seed) {
  struct fixture *fixture = fixture_new(seed);
  fixture->extents = even_extents;
  return fixture;
}

static void check_case(void **state) {
  int number = (int)(intptr_t)*state;
  const struct op_case *at = op_case_at(number);
  for (int round = 0; round < ROUNDS; round++) {
    struct fixture *fixture = even_fixture((uint64_t)number * 1000 + (uint64_t)round);
    at->arrange(fixture);
    check_nodes(fixture, at->function, fixture_call(fixture, at->function));
  }
}

/* Kinds that no function of the table builds. */
static void constants_and_broadcasts(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    struct fixture *fixture = even_fixture((uint64_t)round);
    struct shape shape = fixture_shape(fixture, 3, MOST),
                 narrow = {2, {fixture_random(fixture, 2) ? shape.dim[1] : 1, 1}};
    if (fixture_random(fixture, 2)) narrow.dim[1] = shape.dim[2];
    struct value *x = fixture_tensor(fixture, narrow, AROUND_ZERO), *half = op_constant(fixture->builder, 0.5, shape);
    struct value *wide = op_broadcast(fixture->builder, x, shape);
    check_nodes(fixture, "a sum", builder_binary(fixture->builder, "add", wide, half));
  }
}

/* Heads of queries are divided also where all of them have one head of keys and values, which ranks then have whole. */
static void queries_share_a_head_of_keys(void **state) {
  (void)state;
  struct fixture *fixture = even_fixture(1);
  struct placement placements[5] = {placement_split(1, 1)};
  for (int i = 0; i < 3; i++)
    fixture_tensor(fixture, shape_of(4, (int64_t)2, (int64_t)(i == 0 ? 6 : 1), (int64_t)3, (int64_t)4), AROUND_ZERO);
  fixture_int(fixture, 1);
  struct value *y = fixture_call(fixture, "attention");
  assert_true(op_place(y->producer, 0, 3, placements));
  assert_int_equal(placements[1].form, PLACED_WHOLE);
  assert_int_equal(placements[2].form, PLACED_WHOLE);
  assert_true(placement_equal(placements[3], placements[0]));
  placements[1] = placement_split(1, 1);
  assert_false(op_place(y->producer, 1, 3, placements));
  check_nodes(fixture, "attention", y);
}

/* ---- Rows that ranks sort ---- */

/* What a rank has of the values of a region, by value id. */
struct sorting {
  struct arena *arena;
  const struct frame_data *frame;
  int64_t ranks, rank;
  struct placement *placements;
  double **elements;
};

/* A rank's operands as a node needs them: what it has made, or its part of what is there as a whole. */
static const double *operand_of(const struct sorting *sorting, const struct value *value, struct placement needed) {
  const struct placement has = sorting->placements[value->id];
  if (has.form != PLACED_WHOLE && !placement_equal(has, needed)) fail_msg("'%s' is otherwise", value->name);
  if (has.form != PLACED_WHOLE) return sorting->elements[value->id];
  assert_int_not_equal(needed.form, PLACED_SORTED);
  return part_of(sorting->arena, needed, value->shape, sorting->ranks, sorting->rank, evaluated(sorting->frame, value));
}

/* The operand that says how all are placed: one that is sorted, or one that is split. */
static int seed_of(const struct sorting *sorting, const struct node *node) {
  int seed = -1;
  for (int i = node->n_inputs - 1; i >= 0; i--) {
    const enum placement_form form = sorting->placements[node->inputs[i]->id].form;
    bool better = seed < 0 || sorting->placements[node->inputs[seed]->id].form != PLACED_SORTED;
    if (form == PLACED_SORTED || (form == PLACED_SPLIT && better)) seed = i;
  }
  return seed;
}

static void run_on_rank(struct sorting *sorting, const struct node *node) {
  struct trial trial = {.function = "sorted rows", .node = node, .seed = seed_of(sorting, node)};
  if (trial.seed < 0) return;
  trial.ranks = sorting->ranks;
  trial.split = sorting->placements[node->inputs[trial.seed]->id];
  trial.placements = arena_alloc(sorting->arena, ((size_t)node->n_inputs + 1) * sizeof *trial.placements);
  trial.placements[trial.seed] = trial.split;
  if (!op_place(node, trial.seed, sorting->ranks, trial.placements)) fail_trial(&trial, "no placement");
  const struct node *own = node_of_rank(sorting->arena, &trial, sorting->rank);
  const double **inputs = arena_alloc(sorting->arena, (size_t)node->n_inputs * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = operand_of(sorting, node->inputs[i], trial.placements[i]);
  double *made = arena_alloc(sorting->arena, (size_t)shape_count(own->outputs[0]->shape) * sizeof *made);
  node->kind->reference.evaluate(own, inputs, &made);
  sorting->placements[node->outputs[0]->id] = trial.placements[node->n_inputs];
  sorting->elements[node->outputs[0]->id] = made;
}

/* What each of six rows of `blocks` blocks of x [blocks][6][4] is made into in the groups that it chooses, in its
 * place. */
static struct value *made_in_groups(struct fixture *fixture, struct value *x, struct value *likely, int64_t choices) {
  struct builder *builder = fixture->builder;
  const int64_t blocks = x->shape.dim[0], all = blocks * 6;
  struct attribute k = attribute_int("k", choices), rows = attribute_int("rows", all);
  struct attribute straight = attribute_int("straight", 0);
  struct attribute grouping[] = {attribute_int("groups", 3), attribute_int("capacity", 0), attribute_int("rows", 1)};
  struct value *chosen = builder_op(builder, "top_k", &likely, 1, &k, 1), *weights[3];
  for (int g = 0; g < 3; g++) weights[g] = fixture_tensor(fixture, shape_of(2, (int64_t)5, (int64_t)4), AROUND_ZERO);
  struct value *starts = builder_op(builder, "group_starts", &chosen, 1, grouping, 2);
  struct value *order = builder_op(builder, "group_order", (struct value *[]){chosen, starts}, 2, grouping, 3);
  struct value *taken =
      builder_binary(builder, "embedding", op_reshape(builder, x, shape_of(2, all, (int64_t)4)), order);
  struct value *operands[] = {taken, starts, weights[0], weights[1], weights[2]};
  struct value *made = builder_op(builder, "grouped_matmul", operands, 5, &straight, 1);
  struct value *sum = builder_op(builder, "embedding_backward", (struct value *[]){made, order}, 2, &rows, 1);
  return op_reshape(builder, sum, shape_of(3, blocks, (int64_t)6, (int64_t)5));
}

/* A rank that has its rows of x and likely has those of y. */
static void check_sorted(struct sorting *sorting, const struct value *x, const struct value *likely,
                         const struct value *y) {
  const struct placement rows = placement_split(1, 1);
  const struct value *const given[] = {x, likely};
  const struct trial trial = {.function = "sorted rows", .node = y->producer, .ranks = sorting->ranks};
  sorting->placements = arena_alloc(sorting->arena, ((size_t)y->id + 1) * sizeof *sorting->placements);
  sorting->elements = arena_alloc(sorting->arena, ((size_t)y->id + 1) * sizeof *sorting->elements);
  for (int i = 0; i < 2; i++) {
    sorting->placements[given[i]->id] = rows;
    sorting->elements[given[i]->id] = part_of(sorting->arena, rows, given[i]->shape, sorting->ranks, sorting->rank,
                                              evaluated(sorting->frame, given[i]));
  }
  for (int i = 0; i < y->region->nodes.count; i++) run_on_rank(sorting, y->region->nodes.items[i]);
  assert_true(placement_equal(sorting->placements[y->id], rows));
  compare(&trial, sorting->elements[y->id],
          part_of(sorting->arena, rows, y->shape, sorting->ranks, sorting->rank, evaluated(sorting->frame, y)),
          shape_count(y->shape) / sorting->ranks, "a rank's rows are not its part of the whole");
}

static void rows_are_sorted_by_each_rank(void **state) {
  (void)state;
  for (int64_t round = 0; round < ROUNDS; round++) {
    struct fixture *fixture = even_fixture((uint64_t)round);
    const int64_t blocks = 1 + round % 3;
    struct value *x = fixture_tensor(fixture, shape_of(3, blocks, (int64_t)6, (int64_t)4), AROUND_ZERO);
    struct value *likely = fixture_tensor(fixture, shape_of(3, blocks, (int64_t)6, (int64_t)3), AROUND_ZERO);
    struct value *y = made_in_groups(fixture, x, likely, 1 + round % 2);
    struct sorting sorting = {.arena = fixture->arena, .frame = fixture_run(fixture, y), .ranks = 2 + round % 2};
    for (; sorting.rank < sorting.ranks; sorting.rank++) check_sorted(&sorting, x, likely, y);
    fixture_free(fixture);
  }
}

/* ---- The whole ---- */

/* Run last: what makes tensor parallelism possible could be split in all the cases. */
static void much_can_be_split(void **state) {
  (void)state;
  static const struct accepted expected[] = {
      {"matmul", 0, 0, 1},
      {"matmul", 0, 1, 1},
      {"matmul", 0, 1, 3},
      {"matmul", 1, 0, 1},
      {"matmul", 1, 1, 1},
      {"matmul", 1, 1, 3},
      {"matmul", 1, 2, 1},
      {"matmul", 2, 1, 3},
      {"matmul", 2, 2, 1},
      /* heads: of queries, keys, values, of what comes out; samples of where documents start */
      {"attention", 0, 1, 1},
      {"attention", 1, 1, 1},
      {"attention", 2, 1, 1},
      {"attention", 3, 1, 1},
      {"attention", 0, 0, 1},
      {"attention", 3, 0, 1},
      {"attention", 4, 1, 1},
      /* blocks of heads, which a reshape takes apart and a slice takes one of */
      {"reshape", 0, 1, 1},
      {"reshape", 0, 1, 3},
      {"reshape", 1, 1, 1},
      {"reshape", 1, 2, 1},
      {"slice", 0, 1, 3},
      {"slice", 1, 1, 1},
      {"slice", 1, 1, 2},
      {"slice", 0, 0, 1},
      {"slice_backward", 0, 0, 1},
      {"transpose", 0, 1, 1},
      {"transpose", 1, 2, 1},
      {"concat", 0, 0, 1},
      {"concat", 3, 1, 2},
      {"sum", 0, 0, 1},
      {"sum", 0, 1, 2},
      {"sum", 1, 0, 1},
      {"rotary", 0, 1, 1},
      {"rotary", 0, 2, 1},
      {"rotary", 1, 0, 1},
      {"rotary", 3, 1, 1},
      {"embedding", 1, 0, 1},
      {"embedding", 1, 1, 1},
      {"softmax", 0, 0, 1},
      {"layer_norm", 0, 0, 1},
      {"rms_norm", 0, 0, 1},
      {"rms_norm", 2, 1, 1},
      {"add", 0, 1, 1},
      {"add", 1, 0, 3},
      {"add", 2, 2, 1},
      {"mul", 1, 1, 1},
      {"where", 0, 0, 1},
      {"where", 3, 2, 2},
      {"gelu", 0, 1, 1},
      {"gelu", 1, 0, 3},
      {"gather", 0, 0, 1},
      {"cumsum", 0, 0, 1},
      {"top_k", 0, 0, 1},
      {"constant", 0, 1, 3},
      {"broadcast", 0, 0, 1},
      {"broadcast", 1, 0, 1},
      {"broadcast", 1, 2, 3},
  };
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
    if (!is_accepted(&expected[i]))
      fail_msg("%s, operand %d, dimension %d, %d blocks could never be split", expected[i].kind, expected[i].operand,
               expected[i].dim, expected[i].blocks);
  print_message("%d operands, dimensions and blocks of kinds could be split\n", n_accepted);
  assert_true(n_accepted >= 1000);
}

int main(void) {
  int count = 0;
  while (op_case_at(count) != NULL) count++;
  struct CMUnitTest *tests = calloc((size_t)count + 4, sizeof *tests);
  if (tests == NULL) return 1;
  for (int i = 0; i < count; i++)
    tests[i] = (struct CMUnitTest){
        .name = op_case_at(i)->function, .test_func = check_case, .initial_state = (void *)(intptr_t)i};
  tests[count] = (struct CMUnitTest)cmocka_unit_test(constants_and_broadcasts);
  tests[count + 1] = (struct CMUnitTest)cmocka_unit_test(queries_share_a_head_of_keys);
  tests[count + 2] = (struct CMUnitTest)cmocka_unit_test(rows_are_sorted_by_each_rank);
  tests[count + 3] = (struct CMUnitTest)cmocka_unit_test(much_can_be_split);
  int failed = _cmocka_run_group_tests("placements", tests, (size_t)count + 4, NULL, NULL);
  free(tests);
  return failed;
}
