#include <string.h>

#include "tests/ops/cases.h"

/* ---- Shapes ---- */

static struct shape push_random(struct lab *lab, int least) {
  struct shape shape = lab_shape(lab, least + (int)lab_random(lab, 4 - least), MOST);
  lab_tensor(lab, shape, AROUND_ZERO);
  return shape;
}

static int64_t random_axis(struct lab *lab, struct shape shape) {
  return lab_random(lab, 2 * shape.rank) - shape.rank; /* from either end */
}

static void with_axis(struct lab *lab) {
  struct shape shape = push_random(lab, 1);
  lab_int(lab, random_axis(lab, shape));
}

static void with_axes(struct lab *lab) {
  struct shape shape = push_random(lab, 1);
  lab_int(lab, random_axis(lab, shape));
  lab_int(lab, random_axis(lab, shape));
}

static void reshaped(struct lab *lab) {
  struct shape shape = push_random(lab, 3);
  lab_int(lab, 3);
  lab_int(lab, shape.dim[1]);
  lab_int(lab, -1);
  lab_int(lab, shape.dim[0]);
}

static void sliced(struct lab *lab) {
  struct shape shape = push_random(lab, 1);
  int64_t axis = random_axis(lab, shape), extent = shape.dim[shape_axis(shape, axis)];
  int64_t start = lab_random(lab, extent);
  lab_int(lab, axis);
  lab_int(lab, start);
  lab_int(lab, 1 + lab_random(lab, extent - start));
}

static void padded(struct lab *lab) {
  struct shape shape = push_random(lab, 1);
  lab_int(lab, random_axis(lab, shape));
  lab_int(lab, lab_random(lab, 4));
  lab_int(lab, lab_random(lab, 4));
}

static struct shape apart(struct lab *lab) {
  struct shape shape = lab_shape(lab, 1 + (int)lab_random(lab, 3), MOST);
  lab_apart(lab, shape);
  return shape;
}

static void apart_with_axis(struct lab *lab) {
  struct shape shape = apart(lab);
  lab_int(lab, random_axis(lab, shape));
}

static void best(struct lab *lab) {
  struct shape shape = apart(lab);
  lab_int(lab, 1 + lab_random(lab, shape.dim[shape.rank - 1]));
}

/* A tensor, an axis, and an index of its shape but there. */
static int64_t indexed(struct lab *lab) {
  struct shape shape = push_random(lab, 1);
  int64_t axis = random_axis(lab, shape), extent = shape.dim[shape_axis(shape, axis)];
  lab_int(lab, axis);
  return extent;
}

static void gathered(struct lab *lab) {
  int64_t extent = indexed(lab);
  struct shape shape = lab->parameters.items[0].shape;
  shape.dim[shape_axis(shape, lab->arguments[1].integer)] = lab_extent(lab);
  lab_tokens(lab, shape, extent);
}

static void scattered(struct lab *lab) {
  indexed(lab);
  int64_t size = lab_extent(lab);
  lab_tokens(lab, lab->parameters.items[0].shape, size);
  lab_int(lab, size);
}

static void rows_taken(struct lab *lab) {
  struct shape shape = {2, {lab_extent(lab), lab_extent(lab)}};
  lab_tensor(lab, shape, AROUND_ZERO);
  lab_tokens(lab, lab_shape(lab, (int)lab_random(lab, 3), 60), shape.dim[0]);
}

static void rows_added(struct lab *lab) {
  struct shape shape = lab_shape(lab, 1 + (int)lab_random(lab, 3), MOST), index = shape;
  int64_t rows = lab_extent(lab);
  index.rank--;
  lab_tensor(lab, shape, AROUND_ZERO);
  lab_tokens(lab, index, rows);
  lab_int(lab, rows);
}

static void parted(struct lab *lab) {
  struct shape shape = push_random(lab, 1);
  int64_t axis = random_axis(lab, shape), parts = shape.dim[shape_axis(shape, axis)];
  lab_int(lab, axis);
  lab_int(lab, parts);
  lab_int(lab, lab_random(lab, parts));
}

static void joined(struct lab *lab) {
  struct shape shape = lab_shape(lab, 1 + (int)lab_random(lab, 3), 60);
  int64_t axis = random_axis(lab, shape);
  lab_int(lab, axis);
  lab_int(lab, 3);
  for (int i = 0; i < 3; i++) {
    shape.dim[shape_axis(shape, axis)] = lab_extent(lab);
    lab_tensor(lab, shape, AROUND_ZERO);
  }
}

static void dropped(struct lab *lab) {
  push_random(lab, 0);
  lab_real(lab, 0.3);
}

/* ---- Sparse products ---- */

/* Places of elements by rows and columns, their values, and what is multiplied; some rows and columns have none, some
 * places have two. */
static void sparse(struct lab *lab) {
  int64_t rows = lab_extent(lab), columns = lab_extent(lab), elements = 1 + lab_random(lab, 20);
  lab_tokens(lab, shape_of(1, elements), rows);
  lab_tokens(lab, shape_of(1, elements), columns);
  lab_tensor(lab, shape_of(1, elements), AROUND_ZERO);
  lab_tensor(lab, shape_of(2, columns, lab_extent(lab)), AROUND_ZERO);
  lab_int(lab, rows);
}

static void sparse_by_rows(struct lab *lab) {
  int64_t rows = lab_extent(lab), columns = lab_extent(lab), elements = 0;
  lab_tokens(lab, shape_of(1, rows + 1), 1);
  double *starts = lab->inputs.items[0].elements;
  for (int64_t r = 0; r < rows; r++) starts[r + 1] = (double)(elements += lab_random(lab, 4));
  if (elements == 0) starts[rows] = (double)++elements;
  lab_tokens(lab, shape_of(1, elements), columns);
  lab_tensor(lab, shape_of(1, elements), AROUND_ZERO);
  lab_tensor(lab, shape_of(2, columns, lab_extent(lab)), AROUND_ZERO);
}

/* Groups of rows, some of them empty, and rows behind the last one. */
static void grouped_rows(struct lab *lab) {
  int64_t rows = lab_extent(lab), in = lab_extent(lab), out = lab_extent(lab), groups = 1 + lab_random(lab, 4);
  lab_tensor(lab, shape_of(2, rows, in), AROUND_ZERO);
  lab_tokens(lab, shape_of(1, groups + 1), 1);
  double *starts = lab->inputs.items[0].elements;
  for (int64_t g = 0; g < groups; g++)
    starts[g + 1] = starts[g] + (double)lab_random(lab, rows - (int64_t)starts[g] + 1);
  lab_int(lab, groups);
  for (int64_t g = 0; g < groups; g++) lab_tensor(lab, shape_of(2, out, in), AROUND_ZERO);
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
static void push_labelled(struct lab *lab, char *spec) {
  struct shape shape = {0};
  int64_t letters = lab_random(lab, 4), dots = lab_random(lab, 4) - 1, narrow = lab_random(lab, 3 * LABELS);
  int64_t before = lab_random(lab, letters + 1);
  for (int64_t i = 0; i <= letters; i++) {
    int64_t label = lab_random(lab, LABELS);
    if (i == before && dots >= 0) add_dots(&shape, spec, dots);
    if (i < letters) add_label(&shape, spec, (char)('a' + label), label == narrow ? 1 : label_extents[label]);
  }
  lab_tensor(lab, shape, AROUND_ZERO);
}

/* Some of the labels that there are, in another order. */
static void add_result(struct lab *lab, char *spec) {
  struct shape ignored = {0};
  char labels[LABELS + 1] = "";
  int64_t first = lab_random(lab, LABELS);
  for (int64_t i = 0; i < LABELS; i++) {
    char label = (char)('a' + (3 * i + first) % LABELS);
    if (strchr(spec, label) != NULL && lab_random(lab, 2) == 0) add_label(&ignored, labels, label, 1);
  }
  const char *dots = strchr(spec, '.') != NULL ? "..." : "";
  bool behind = lab_random(lab, 2) == 0;
  strcat(spec, "->");
  strcat(strcat(spec, behind ? labels : dots), behind ? dots : labels);
}

static void contracted(struct lab *lab) {
  char *spec = arena_alloc(lab->arena, 64);
  int64_t operands = 1 + lab_random(lab, 3);
  lab_string(lab, spec);
  lab_int(lab, operands);
  for (int64_t i = 0; i < operands; i++) {
    if (i > 0) strcat(spec, ",");
    push_labelled(lab, spec);
  }
  if (lab_random(lab, 4) > 0) add_result(lab, spec);
}

/* ---- Sequences ---- */

static void recurrent(struct lab *lab) {
  lab_scope(lab);
  lab_tensor(lab, lab_shape(lab, 3, 60), AROUND_ZERO);
  lab_int(lab, 1 + lab_random(lab, 4));
  lab_int(lab, 0);
}

/* Few steps: where a is above zero the states grow at each, and differences lose their digits. */
static void scanned(struct lab *lab) {
  struct shape u = lab_shape(lab, 3, 60);
  if (u.dim[1] > 3) u.dim[1] = 3;
  struct shape states = u;
  states.dim[2] = 1 + lab_random(lab, 4);
  lab_tensor(lab, u, AROUND_ZERO);
  lab_tensor(lab, u, POSITIVE);
  lab_tensor(lab, (struct shape){2, {u.dim[2], states.dim[2]}}, AROUND_ZERO);
  lab_tensor(lab, states, AROUND_ZERO);
  lab_tensor(lab, states, AROUND_ZERO);
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
    {"transpose", with_axes},
    {"slice", sliced},
    {"split", parted},
    {"flip", with_axis},
    {"sparse_matmul", sparse},
    {"sparse_matmul_csr", sparse_by_rows},
    {"grouped_matmul", grouped_rows},
    {"einsum_of", contracted},
    {"concat_of", joined},
    {"dropout", dropped},
    {"top_k", best},
    {0},
};
