#include <string.h>

#include "tests/ops/cases.h"

/* ---- Shapes ---- */

static struct shape push_random(struct fixture *fixture, int least) {
  struct shape shape = fixture_shape(fixture, least + (int)fixture_random(fixture, 4 - least), MOST);
  fixture_tensor(fixture, shape, AROUND_ZERO);
  return shape;
}

static int64_t random_axis(struct fixture *fixture, struct shape shape) {
  return fixture_random(fixture, 2 * shape.rank) - shape.rank; /* from either end */
}

static void with_axis(struct fixture *fixture) {
  struct shape shape = push_random(fixture, 1);
  fixture_int(fixture, random_axis(fixture, shape));
}

static void rolled(struct fixture *fixture) {
  with_axis(fixture);
  fixture_int(fixture, fixture_random(fixture, 20) - 10);
}

static void with_axes(struct fixture *fixture) {
  struct shape shape = push_random(fixture, 1);
  fixture_int(fixture, random_axis(fixture, shape));
  fixture_int(fixture, random_axis(fixture, shape));
}

static void reshaped(struct fixture *fixture) {
  struct shape shape = push_random(fixture, 3);
  fixture_int(fixture, 3);
  fixture_int(fixture, shape.dim[1]);
  fixture_int(fixture, -1);
  fixture_int(fixture, shape.dim[0]);
}

/* Rows of three blocks of heads, taken apart, and heads put together. */
static void heads_apart(struct fixture *fixture) {
  struct shape parts = fixture_shape(fixture, 3, MOST / 3);
  fixture_tensor(fixture, shape_of(2, parts.dim[0], 3 * parts.dim[1] * parts.dim[2]), AROUND_ZERO);
  fixture_int(fixture, 4);
  fixture_int(fixture, parts.dim[0]);
  fixture_int(fixture, 3);
  fixture_int(fixture, parts.dim[1]);
  fixture_int(fixture, parts.dim[2]);
}

static void heads_together(struct fixture *fixture) {
  struct shape parts = fixture_shape(fixture, 3, MOST);
  fixture_tensor(fixture, parts, AROUND_ZERO);
  fixture_int(fixture, 2);
  fixture_int(fixture, parts.dim[0]);
  fixture_int(fixture, parts.dim[1] * parts.dim[2]);
}

/* One or two thirds of rows, as queries, keys and values are side by side. */
static void thirds(struct fixture *fixture) {
  struct shape third = fixture_shape(fixture, 2, MOST / 3), whole = third;
  int64_t first = fixture_random(fixture, 3);
  whole.dim[1] *= 3;
  fixture_tensor(fixture, whole, AROUND_ZERO);
  fixture_int(fixture, 1);
  fixture_int(fixture, first * third.dim[1]);
  fixture_int(fixture, (1 + fixture_random(fixture, first == 2 ? 1 : 2)) * third.dim[1]);
}

static void sliced(struct fixture *fixture) {
  struct shape shape = push_random(fixture, 1);
  int64_t axis = random_axis(fixture, shape), extent = shape.dim[shape_axis(shape, axis)];
  int64_t start = fixture_random(fixture, extent);
  fixture_int(fixture, axis);
  fixture_int(fixture, start);
  fixture_int(fixture, 1 + fixture_random(fixture, extent - start));
}

static void padded(struct fixture *fixture) {
  struct shape shape = push_random(fixture, 1);
  fixture_int(fixture, random_axis(fixture, shape));
  fixture_int(fixture, fixture_random(fixture, 4));
  fixture_int(fixture, fixture_random(fixture, 4));
}

static struct shape separate(struct fixture *fixture) {
  struct shape shape = fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST);
  fixture_apart(fixture, shape);
  return shape;
}

static void apart_with_axis(struct fixture *fixture) {
  struct shape shape = separate(fixture);
  fixture_int(fixture, random_axis(fixture, shape));
}

static void best(struct fixture *fixture) {
  struct shape shape = separate(fixture);
  fixture_int(fixture, 1 + fixture_random(fixture, shape.dim[shape.rank - 1]));
}

/* A tensor, an axis, and an index of its shape but there. */
static int64_t indexed(struct fixture *fixture) {
  struct shape shape = push_random(fixture, 1);
  int64_t axis = random_axis(fixture, shape), extent = shape.dim[shape_axis(shape, axis)];
  fixture_int(fixture, axis);
  return extent;
}

static void gathered(struct fixture *fixture) {
  int64_t extent = indexed(fixture);
  struct shape shape = fixture->parameters.items[0].shape;
  shape.dim[shape_axis(shape, fixture->arguments[1].integer)] = fixture_extent(fixture);
  fixture_tokens(fixture, shape, extent);
}

static void scattered(struct fixture *fixture) {
  indexed(fixture);
  int64_t size = fixture_extent(fixture);
  fixture_tokens(fixture, fixture->parameters.items[0].shape, size);
  fixture_int(fixture, size);
}

static void rows_taken(struct fixture *fixture) {
  struct shape shape = {2, {fixture_extent(fixture), fixture_extent(fixture)}};
  fixture_tensor(fixture, shape, AROUND_ZERO);
  fixture_tokens(fixture, fixture_shape(fixture, (int)fixture_random(fixture, 3), 60), shape.dim[0]);
}

static void rows_added(struct fixture *fixture) {
  struct shape shape = fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST), index = shape;
  int64_t rows = fixture_extent(fixture);
  index.rank--;
  fixture_tensor(fixture, shape, AROUND_ZERO);
  fixture_tokens(fixture, index, rows);
  fixture_int(fixture, rows);
}

static void parted(struct fixture *fixture) {
  struct shape shape = push_random(fixture, 1);
  int64_t axis = random_axis(fixture, shape), parts = shape.dim[shape_axis(shape, axis)];
  fixture_int(fixture, axis);
  fixture_int(fixture, parts);
  fixture_int(fixture, fixture_random(fixture, parts));
}

static void concatenated(struct fixture *fixture) {
  struct shape shape = fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), 60);
  int64_t axis = random_axis(fixture, shape);
  fixture_int(fixture, axis);
  fixture_int(fixture, 3);
  for (int i = 0; i < 3; i++) {
    shape.dim[shape_axis(shape, axis)] = fixture_extent(fixture);
    fixture_tensor(fixture, shape, AROUND_ZERO);
  }
}

static void dropped(struct fixture *fixture) {
  push_random(fixture, 0);
  fixture_real(fixture, 0.3);
}

/* ---- Sparse products ---- */

/* Positions of elements by rows and columns, their values, and what is multiplied; some rows and columns have none,
 * some positions have two. */
static void sparse(struct fixture *fixture) {
  int64_t rows = fixture_extent(fixture), columns = fixture_extent(fixture), elements = 1 + fixture_random(fixture, 20);
  fixture_tokens(fixture, shape_of(1, elements), rows);
  fixture_tokens(fixture, shape_of(1, elements), columns);
  fixture_tensor(fixture, shape_of(1, elements), AROUND_ZERO);
  fixture_tensor(fixture, shape_of(2, columns, fixture_extent(fixture)), AROUND_ZERO);
  fixture_int(fixture, rows);
}

static void sparse_by_rows(struct fixture *fixture) {
  int64_t rows = fixture_extent(fixture), columns = fixture_extent(fixture), elements = 0;
  fixture_tokens(fixture, shape_of(1, rows + 1), 1);
  double *starts = fixture->inputs.items[0].elements;
  for (int64_t r = 0; r < rows; r++) starts[r + 1] = (double)(elements += fixture_random(fixture, 4));
  if (elements == 0) starts[rows] = (double)++elements;
  fixture_tokens(fixture, shape_of(1, elements), columns);
  fixture_tensor(fixture, shape_of(1, elements), AROUND_ZERO);
  fixture_tensor(fixture, shape_of(2, columns, fixture_extent(fixture)), AROUND_ZERO);
}

/* Groups of rows, some of them empty, and rows after the last one. */
static void grouped_rows(struct fixture *fixture) {
  int64_t rows = fixture_extent(fixture), in = fixture_extent(fixture), out = fixture_extent(fixture),
          groups = 1 + fixture_random(fixture, 4);
  fixture_tensor(fixture, shape_of(2, rows, in), AROUND_ZERO);
  fixture_tokens(fixture, shape_of(1, groups + 1), 1);
  double *starts = fixture->inputs.items[0].elements;
  for (int64_t g = 0; g < groups; g++)
    starts[g + 1] = starts[g] + (double)fixture_random(fixture, rows - (int64_t)starts[g] + 1);
  fixture_int(fixture, groups);
  for (int64_t g = 0; g < groups; g++) fixture_tensor(fixture, shape_of(2, out, in), AROUND_ZERO);
}

/* ---- Einstein's sums ---- */

/* Extents of labels a to e, and of the two dimensions that "..." may be. */
static const int64_t label_extents[] = {3, 2, 4, 1, 3}, dot_extents[] = {2, 3};
enum { LABELS = 5 };

static void add_label(struct shape *shape, char *spec, char label, int64_t extent) {
  size_t length = strlen(spec);
  spec[length] = label;
  spec[length + 1] = 0;
  shape->dim[shape->rank++] = extent;
}

static void add_dots(struct shape *shape, char *spec, int64_t count) {
  strcat(spec, "...");
  for (int64_t i = 2 - count; i < 2; i++) shape->dim[shape->rank++] = dot_extents[i];
}

/* A random operand; one of its labels may have extent 1 here alone, and broadcasts. */
static void push_labelled(struct fixture *fixture, char *spec) {
  struct shape shape = {0};
  int64_t letters = fixture_random(fixture, 4), dots = fixture_random(fixture, 4) - 1,
          narrow = fixture_random(fixture, 3 * LABELS);
  int64_t before = fixture_random(fixture, letters + 1);
  for (int64_t i = 0; i <= letters; i++) {
    int64_t label = fixture_random(fixture, LABELS);
    if (i == before && dots >= 0) add_dots(&shape, spec, dots);
    if (i < letters) add_label(&shape, spec, (char)('a' + label), label == narrow ? 1 : label_extents[label]);
  }
  fixture_tensor(fixture, shape, AROUND_ZERO);
}

/* Some of the labels that there are, in another order. */
static void add_result(struct fixture *fixture, char *spec) {
  struct shape ignored = {0};
  char labels[LABELS + 1] = "";
  int64_t first = fixture_random(fixture, LABELS);
  for (int64_t i = 0; i < LABELS; i++) {
    char label = (char)('a' + (3 * i + first) % LABELS);
    if (strchr(spec, label) != NULL && fixture_random(fixture, 2) == 0) add_label(&ignored, labels, label, 1);
  }
  const char *dots = strchr(spec, '.') != NULL ? "..." : "";
  bool after = fixture_random(fixture, 2) == 0;
  strcat(spec, "->");
  strcat(strcat(spec, after ? labels : dots), after ? dots : labels);
}

static void contracted(struct fixture *fixture) {
  char *spec = arena_alloc(fixture->arena, 64);
  int64_t operands = 1 + fixture_random(fixture, 3);
  fixture_string(fixture, spec);
  fixture_int(fixture, operands);
  for (int64_t i = 0; i < operands; i++) {
    if (i > 0) strcat(spec, ",");
    push_labelled(fixture, spec);
  }
  if (fixture_random(fixture, 4) > 0) add_result(fixture, spec);
}

/* ---- Sequences ---- */

static void recurrent(struct fixture *fixture) {
  fixture_scope(fixture);
  fixture_tensor(fixture, fixture_shape(fixture, 3, 60), AROUND_ZERO);
  fixture_int(fixture, 1 + fixture_random(fixture, 4));
  fixture_int(fixture, 0);
}

/* Few steps: where a is above zero the states grow at each, and differences lose their digits. */
static void scanned(struct fixture *fixture) {
  struct shape u = fixture_shape(fixture, 3, 60);
  if (u.dim[1] > 3) u.dim[1] = 3;
  struct shape states = u;
  states.dim[2] = 1 + fixture_random(fixture, 4);
  fixture_tensor(fixture, u, AROUND_ZERO);
  fixture_tensor(fixture, u, POSITIVE);
  fixture_tensor(fixture, (struct shape){2, {u.dim[2], states.dim[2]}}, AROUND_ZERO);
  fixture_tensor(fixture, states, AROUND_ZERO);
  fixture_tensor(fixture, states, AROUND_ZERO);
}

const struct op_case shape_cases[] = {
    {"lstm", recurrent},
    {"selective_scan", scanned},
    {"sum", with_axis},
    {"variance", with_axis},
    {"cumsum", with_axis},
    {"max_along", apart_with_axis},
    {"min_along", apart_with_axis},
    {"pad", padded},
    {"gather", gathered},
    {"scatter_add", scattered},
    {"take", rows_taken},
    {"index_add", rows_added},
    {"mean", with_axis},
    {"reshape_to", reshaped},
    {"reshape_to", heads_apart},
    {"reshape_to", heads_together},
    {"transpose", with_axes},
    {"slice", sliced},
    {"slice", thirds},
    {"split", parted},
    {"flip", with_axis},
    {"roll", rolled},
    {"sparse_matmul", sparse},
    {"sparse_matmul_csr", sparse_by_rows},
    {"grouped_matmul", grouped_rows},
    {"einsum_of", contracted},
    {"concat_of", concatenated},
    {"dropout", dropped},
    {"top_k", best},
    {0},
};
