/* What stands for an operation of which each rank has a part of an input (op_ranks.over_parts): all ranks run it in
 * float64, and what they come to is what the operation gives of the whole input. The last rank's part may be padded. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/ir/op.h"
#include "gen/ops/support/support.h"
#include "tests/ops/fixture.h"

enum { ROUNDS = 60, MOST_RANKS = 3, MOST_VALUES = 200 };

/* Ranks that run the nodes of one region: the elements of each value on each rank, by its id. */
struct ranks {
  struct arena *arena;
  int64_t count;
  double *values[MOST_RANKS][MOST_VALUES];
};

static double *zeros(struct arena *arena, struct shape shape) {
  return arena_alloc(arena, ((size_t)shape_count(shape) + 1) * sizeof(double));
}

static double *drawn(struct fixture *fixture, struct shape shape) {
  double *elements = zeros(fixture->arena, shape);
  for (int64_t i = 0; i < shape_count(shape); i++) elements[i] = (double)fixture_random(fixture, 4001) / 500 - 4;
  return elements;
}

/* The parts along a dimension of all ranks become the whole of each. */
static void gather(struct ranks *ranks, const struct node *node) {
  struct op_block own = op_block(node->inputs[0]->shape, (int)node_int(node, "dim"));
  int64_t length = own.extent * own.inner;
  double *all = zeros(ranks->arena, node->outputs[0]->shape);
  for (int64_t o = 0; o < own.outer; o++)
    for (int64_t r = 0; r < ranks->count; r++)
      memcpy(all + (o * ranks->count + r) * length, ranks->values[r][node->inputs[0]->id] + o * length,
             (size_t)length * sizeof *all);
  for (int64_t r = 0; r < ranks->count; r++) ranks->values[r][node->outputs[0]->id] = all;
}

static void run_node(struct ranks *ranks, struct node *node, int64_t rank) {
  const double *inputs[8];
  double *outputs[MAX_OUTPUTS];
  for (int i = 0; i < node->n_attributes; i++)
    if (strcmp(node->attributes[i].name, "rank") == 0) node->attributes[i].integer = rank;
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = ranks->values[rank][node->inputs[i]->id];
  for (int i = 0; i < node->n_outputs; i++)
    ranks->values[rank][node->outputs[i]->id] = outputs[i] = zeros(ranks->arena, node->outputs[i]->shape);
  node->kind->reference.evaluate(node, inputs, outputs);
}

/* Runs the nodes of the region from `first` on. */
static void run_from(struct ranks *ranks, const struct region *region, int first) {
  for (int i = first; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (strcmp(node->kind->name, "all_gather") == 0)
      gather(ranks, node);
    else
      for (int64_t rank = 0; rank < ranks->count; rank++) run_node(ranks, node, rank);
  }
}

static void check_near(const double *found, const double *expected, int64_t count, const char *what) {
  for (int64_t i = 0; i < count; i++)
    if (!(fabs(found[i] - expected[i]) <= 1e-12 * (1 + fabs(expected[i]))))
      fail_msg("%s: element %" PRId64 " is %.17g, not %.17g", what, i, found[i], expected[i]);
}

/* Of rows of `from` elements the first `to`, or with as many zeros as `to` is more. */
static double *resized(struct arena *arena, const double *elements, int64_t rows, int64_t from, int64_t to) {
  double *made = arena_alloc(arena, ((size_t)(rows * to) + 1) * sizeof *made);
  for (int64_t r = 0; r < rows; r++)
    memcpy(made + r * to, elements + r * from, (size_t)(from < to ? from : to) * sizeof *made);
  return made;
}

/* Columns `rank` of `ranks` parts of each row. */
static double *columns_of(struct arena *arena, const double *whole, int64_t rows, int64_t own, int64_t ranks,
                          int64_t rank) {
  double *part = arena_alloc(arena, ((size_t)(rows * own) + 1) * sizeof *part);
  for (int64_t r = 0; r < rows; r++)
    memcpy(part + r * own, whole + (r * ranks + rank) * own, (size_t)own * sizeof *part);
  return part;
}

/* ---- Embedding ---- */

static void embeddings(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    struct fixture *fixture = fixture_new((uint64_t)round);
    struct ranks ranks = {.arena = fixture->arena, .count = 2 + (int64_t)fixture_random(fixture, 2)};
    int64_t rows = 1 + (int64_t)fixture_random(fixture, 5), width = 1 + (int64_t)fixture_random(fixture, 4);
    struct shape tokens = shape_of(1, (int64_t)1 + (int64_t)fixture_random(fixture, 9)),
                 weight = shape_of(2, rows, width);
    struct value *inputs[] = {builder_input(fixture->builder, "weight", weight, DTYPE_FLOAT32),
                              builder_input(fixture->builder, "tokens", tokens, DTYPE_INT32)};
    struct node *node = builder_node(fixture->builder, "embedding", inputs, 2, NULL, 0);
    struct region *region = node->region;
    int first = region->nodes.count;
    int64_t whole_rows = rows * ranks.count - (int64_t)fixture_random(fixture, (int)rows);
    double *index = zeros(fixture->arena, tokens), *table = drawn(fixture, shape_of(2, rows * ranks.count, width));
    for (int64_t i = 0; i < tokens.dim[0]; i++) index[i] = (double)fixture_random(fixture, whole_rows);
    struct node *part = node->kind->ranks.over_parts(fixture->builder, node, whole_rows, ranks.count, 5);
    struct value *back_inputs[] = {part->outputs[0], part->inputs[1]};
    struct node *back = builder_node(fixture->builder, "embedding_part_backward", back_inputs, 2,
                                     (struct attribute[]){attribute_int("rows", rows), attribute_int("ignore", -1)}, 2);
    for (int64_t r = 0; r < ranks.count; r++) {
      ranks.values[r][inputs[0]->id] = table + r * rows * width;
      ranks.values[r][inputs[1]->id] = index;
    }
    run_from(&ranks, region, first);
    int64_t count = shape_count(node->outputs[0]->shape);
    double *sum = zeros(fixture->arena, node->outputs[0]->shape),
           *whole = zeros(fixture->arena, node->outputs[0]->shape);
    for (int64_t i = 0; i < count; i++)
      for (int64_t r = 0; r < ranks.count; r++) sum[i] += ranks.values[r][part->outputs[0]->id][i];
    node->kind->reference.evaluate(node, (const double *const[]){table, index}, &whole);
    check_near(sum, whole, count, "the ranks' sum of rows");
    double *slope = zeros(fixture->arena, shape_of(2, rows * ranks.count, width));
    for (int64_t i = 0; i < tokens.dim[0]; i++)
      for (int64_t c = 0; c < width; c++) slope[(int64_t)index[i] * width + c] += whole[i * width + c];
    for (int64_t r = 0; r < ranks.count; r++)
      check_near(ranks.values[r][back->outputs[0]->id], slope + r * rows * width, rows * width, "a rank's gradient");
    fixture_free(fixture);
  }
}

/* ---- Cross-entropy ---- */

struct entropy {
  struct fixture *fixture;
  struct ranks ranks;
  struct value *inputs[2];
  struct node *node;
  int64_t rows, own, whole; /* classes of a rank, of all */
  double *logits, *targets;
};

static void draw_entropy(struct entropy *entropy, int round) {
  struct fixture *fixture = entropy->fixture = fixture_new((uint64_t)round);
  struct ranks *ranks = &entropy->ranks;
  *ranks = (struct ranks){.arena = fixture->arena, .count = 2 + (int64_t)fixture_random(fixture, 2)};
  int64_t rows = entropy->rows = 1 + (int64_t)fixture_random(fixture, 9), own = 1 + (int64_t)fixture_random(fixture, 9);
  entropy->own = own;
  entropy->whole = own * ranks->count - (int64_t)fixture_random(fixture, own);
  struct attribute attributes[] = {attribute_int("ignore", -100),
                                   attribute_real("smoothing", fixture_random(fixture, 2) ? 0 : 0.1),
                                   attribute_real("z", fixture_random(fixture, 2) ? 0 : 0.01)};
  entropy->inputs[0] = builder_input(fixture->builder, "logits", shape_of(2, rows, own), DTYPE_FLOAT32);
  entropy->inputs[1] = builder_input(fixture->builder, "targets", shape_of(1, rows), DTYPE_INT32);
  entropy->node = builder_node(fixture->builder, "cross_entropy", entropy->inputs, 2, attributes, 3);
  entropy->logits = drawn(fixture, shape_of(2, rows, own * ranks->count));
  entropy->targets = zeros(fixture->arena, shape_of(1, rows));
  for (int64_t r = 0; r < rows; r++)
    entropy->targets[r] =
        r > 0 && fixture_random(fixture, 4) == 0 ? -100 : (double)fixture_random(fixture, entropy->whole);
  for (int64_t r = 0; r < ranks->count; r++) {
    ranks->values[r][entropy->inputs[0]->id] = columns_of(fixture->arena, entropy->logits, rows, own, ranks->count, r);
    ranks->values[r][entropy->inputs[1]->id] = entropy->targets;
  }
}

/* The node over whole logits: its loss, lse and scale, and its gradient. */
static void run_whole(const struct entropy *entropy, double **outputs, double *slope) {
  struct value logits = *entropy->inputs[0], *inputs[] = {&logits, entropy->inputs[1]};
  struct node whole = *entropy->node;
  const double *elements = resized(entropy->fixture->arena, entropy->logits, entropy->rows,
                                   entropy->own * entropy->ranks.count, entropy->whole);
  logits.shape.dim[1] = entropy->whole;
  whole.inputs = inputs;
  whole.kind->reference.evaluate(&whole, (const double *const[]){elements, entropy->targets}, outputs);
  struct value *back_inputs[] = {NULL, &logits};
  struct node back = whole;
  back.inputs = back_inputs;
  const double one = 1;
  const double *const given[] = {&one, elements, outputs[1], outputs[2], entropy->targets};
  op_kind_find("cross_entropy_backward")->reference.evaluate(&back, given, &slope);
}

static void compare_entropy(struct entropy *entropy, int first) {
  struct ranks *ranks = &entropy->ranks;
  struct builder *builder = entropy->fixture->builder;
  struct arena *arena = entropy->fixture->arena;
  struct node *joined = entropy->node->kind->ranks.over_parts(builder, entropy->node, entropy->whole, ranks->count, 5);
  struct region *region = joined->region;
  run_from(ranks, region, first);
  int made = region->nodes.count;
  struct value *loss = joined->outputs[0], *dx[4] = {NULL};
  joined->kind->gradient(builder, joined, (struct value *[]){loss, NULL, NULL}, dx); /* with the loss as its gradient */
  const struct node *part = NULL;
  for (int i = first; part == NULL; i++)
    if (strcmp(region->nodes.items[i]->kind->name, "cross_entropy_part") == 0) part = region->nodes.items[i];
  struct node *both =
      builder_op(builder, "concat",
                 (struct value *[]){op_reshape(builder, dx[0], shape_of(2, (int64_t)1, entropy->rows * ranks->count)),
                                    op_reshape(builder, dx[1], shape_of(2, (int64_t)1, entropy->rows * ranks->count))},
                 2, (struct attribute[]){attribute_int("axis", 0)}, 1)
          ->producer;
  run_from(ranks, region, made);
  struct shape of_part = part->outputs[0]->shape;
  double *outputs[] = {zeros(arena, of_part), zeros(arena, of_part), zeros(arena, of_part)};
  double *slope = zeros(arena, shape_of(2, entropy->rows, entropy->own * ranks->count));
  run_whole(entropy, outputs, slope);
  slope = resized(arena, slope, entropy->rows, entropy->whole, entropy->own * ranks->count);
  for (int64_t r = 0; r < ranks->count; r++) {
    const double *given_loss = ranks->values[r][loss->id];
    check_near(given_loss, outputs[0], 1, "the loss");
    check_near(ranks->values[r][joined->outputs[1]->id], outputs[1], entropy->rows, "lse");
    check_near(ranks->values[r][joined->outputs[2]->id], outputs[2], 1, "scale");
    const double *d = ranks->values[r][both->outputs[0]->id];
    double *own = zeros(arena, part->inputs[0]->shape);
    struct node back = *part;
    back.inputs = (struct value *[]){NULL, NULL, part->inputs[0]};
    back.n_inputs = part->n_inputs + 3;
    const double *const given[] = {d + r * entropy->rows,
                                   d + (ranks->count + r) * entropy->rows,
                                   ranks->values[r][part->inputs[0]->id],
                                   ranks->values[r][part->outputs[0]->id],
                                   ranks->values[r][part->inputs[1]->id],
                                   part->n_inputs > 2 ? ranks->values[r][part->inputs[2]->id] : NULL};
    op_kind_find("cross_entropy_part_backward")->reference.evaluate(&back, given, &own);
    double *expected = columns_of(arena, slope, entropy->rows, entropy->own, ranks->count, r);
    for (int64_t i = 0; i < entropy->rows * entropy->own; i++) expected[i] *= outputs[0][0];
    check_near(own, expected, entropy->rows * entropy->own, "a rank's gradient of logits");
  }
}

static void cross_entropies(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    struct entropy entropy;
    draw_entropy(&entropy, round);
    compare_entropy(&entropy, entropy.node->region->nodes.count);
    fixture_free(entropy.fixture);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(embeddings), cmocka_unit_test(cross_entropies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
