/* Functions without a gradient: of whole numbers, comparisons and numbers of the model. */
#include "tests/ops/cases.h"

static void compared(struct fixture *fixture) {
  struct shape shape = fixture_shape(fixture, (int)fixture_random(fixture, 4), MOST);
  fixture_tensor(fixture, shape, COMB_A);
  fixture_tensor(fixture, shape, COMB_A);
}

static void row(struct fixture *fixture) {
  fixture_tensor(fixture, fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST), AROUND_ZERO);
}

/* Of equal ones the first is the largest. */
static void largest(struct fixture *fixture) {
  struct shape shape = fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST);
  fixture_tensor(fixture, shape, COMB_A);
  fixture_int(fixture, fixture_random(fixture, 2 * shape.rank) - shape.rank);
}

/* Its test gives the shape. */
static void widened(struct fixture *fixture) {
  const int64_t rows = fixture_random(fixture, 2) == 0 ? 1 : 5;
  fixture_tensor(fixture, shape_of(2, rows, (int64_t)3), AROUND_ZERO);
}

static void best(struct fixture *fixture) {
  struct shape shape = fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST);
  fixture_apart(fixture, shape);
  fixture_int(fixture, 1 + fixture_random(fixture, shape.dim[shape.rank - 1]));
}

static void whole(struct fixture *fixture) {
  fixture_tokens(fixture, fixture_shape(fixture, (int)fixture_random(fixture, 4), MOST), 9);
}

/* Some are cut to the first and some to the last. */
static void cut(struct fixture *fixture) {
  struct fixture_tensor *x = fixture_fixed(fixture, fixture_shape(fixture, 1, MOST));
  for (int64_t i = 0; i < x->shape.dim[0]; i++) x->elements[i] = (double)fixture_random(fixture, 70) / 8 - 2;
  fixture_int(fixture, 5);
}

static void counted(struct fixture *fixture) {
  fixture_int(fixture, fixture_extent(fixture));
}

static void filled(struct fixture *fixture) {
  fixture_real(fixture, -0.7);
  fixture_int(fixture, 2);
  fixture_int(fixture, fixture_extent(fixture));
  fixture_int(fixture, fixture_extent(fixture));
}

static void listed(struct fixture *fixture) {
  fixture_int(fixture, 3);
  for (int i = 0; i < 3; i++) fixture_int(fixture, fixture_random(fixture, 9) - 4);
}

static void classes(struct fixture *fixture) {
  whole(fixture);
  fixture_int(fixture, 9);
}

/* Rows of choices; some groups are chosen by none. */
static void chosen(struct fixture *fixture) {
  fixture_tokens(fixture, fixture_shape(fixture, 2 + (int)fixture_random(fixture, 2), MOST), 9);
  fixture_int(fixture, 9);
  fixture_int(fixture, 0);
}

const struct op_case index_cases[] = {
    {"equal", compared},
    {"greater", compared},
    {"greater_equal", compared},
    {"less", compared},
    {"less_equal", compared},
    {"broadcast", widened},
    {"detach", row},
    {"argmax", largest},
    {"top_k_indices", best},
    {"top_k_mask", best},
    {"cast_float", whole},
    {"cast_index", cut},
    {"arange", counted},
    {"constant_of", filled},
    {"table_of", listed},
    {"int_table_of", listed},
    {"one_hot", classes},
    {"group_starts", chosen},
    {"group_positions", chosen},
    {"group_rows", chosen},
    {0},
};
