/* Tables: what is read, and the message for each bad text. */
#include "cmocka_all.h"

#include "runtime/data/rows.h"

#include <stdlib.h>
#include <string.h>

/* Of all but the last column, and of the last one. */
static const struct accel_input of_columns[][2] = {
    [2] = {{"features", NULL, ACCEL_FLOAT32, 1, 0, 0, false}, {"labels", NULL, ACCEL_FLOAT32, 1, 0, 0, false}},
    [3] = {{"features", NULL, ACCEL_FLOAT32, 2, 0, 0, false}, {"labels", NULL, ACCEL_FLOAT32, 1, 0, 0, false}},
};

static bool read_bytes(struct table *table, int columns, const char *text, size_t size, struct problem *problem) {
  struct accel_program program = {.inputs = of_columns[columns], .n_inputs = 2};
  struct indices none;
  assert_true(rt_indices_of(&none, &program, NULL, problem));
  bool good = rt_csv_read(table, &none, "t.csv", text, size, problem);
  rt_indices_free(&none);
  return good;
}

static bool read_text(struct table *table, int columns, const char *text, struct problem *problem) {
  return read_bytes(table, columns, text, strlen(text), problem);
}

static void values(void **state) {
  static const float wanted[] = {1, 2.5f, 0, -3e-2f, 4, 1};
  static const char *const texts[] = {
      "a,b,label\n1,2.5,0\n-3e-2,4,1\n",
      "1,2.5,0\n-3e-2,4,1",
      "\xef\xbb\xbf a , b,c\r\n1 ,\t2.5,0\r\n\r\n-0.03,+4,1\r\n",
      "x1,2,3\n1,2.5,0\n\n  \n-.03,4.,1\n\n",
      "\n\"a \"\"b\"\", c\",\"two\nlines\",label\n\"1\",2.5,0\n-0.03,\"4\",1\n",
      "12\" wide,3\" high, \"x, \"\"y\"\"\"\n1,2.5,0\n-0.03, \"4\" ,1\n",
  };
  struct problem problem;
  struct table table;
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_true(read_text(&table, 3, texts[i], &problem));
    assert_int_equal(table.rows, 2);
    assert_memory_equal(table.cells, wanted, sizeof wanted);
    rt_table_free(&table);
  }
}

static void empty_texts(void **state) {
  static const char *const texts[] = {"", "\n\n", "a,b\n", "\xef\xbb\xbf"};
  struct problem problem;
  struct table table;
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_true(read_text(&table, 2, texts[i], &problem));
    assert_int_equal(table.rows, 0);
    rt_table_free(&table);
  }
}

static void bad_texts(void **state) {
  static const struct {
    const char *text, *what;
  } bad[] = {
      {"1,2\n3\n", "t.csv: line 2: fewer than 2 columns"},
      {"1,2\n3,4,5\n", "t.csv: line 2: more than 2 columns"},
      {"1,2\n3,\n", "t.csv: line 2, column 2: no value"},
      {"a,b\n1,2\nx,4\n", "t.csv: line 3, column 1: 'x' is not a finite decimal number"},
      {"1,2\nnan,4\n", "t.csv: line 2, column 1: 'nan' is not a finite decimal number"},
      {"1,2\n1e99,4\n", "t.csv: line 2, column 1: '1e99' is not a finite decimal number"},
      {"1,2\n0x10,4\n", "t.csv: line 2, column 1: '0x10' is not a finite decimal number"},
      {"1,2\n1-2,4\n", "t.csv: line 2, column 1: '1-2' is not a finite decimal number"},
      {"1,2\n\"3,4", "t.csv: line 2, column 1: '\"3,4' is not a finite decimal number"},
      {"a,\"b\nc\"\n1,2\nx,4\n", "t.csv: line 4, column 1: 'x' is not a finite decimal number"},
      {"1;2\n3;4\n", "t.csv: line 2, column 1: '3;4' is not a finite decimal number"},
  };
  struct problem problem;
  struct table table;
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_false(read_text(&table, 2, bad[i].text, &problem));
    assert_string_equal(problem.what, bad[i].what);
    assert_true(problem.help[0] != '\0');
  }
}

/* A table of 2 columns, of whose numbers this is asked. */
static bool read_program(const char *text, const struct accel_program *program, struct table *table,
                         struct problem *problem) {
  struct indices indices;
  assert_true(rt_indices_of(&indices, program, NULL, problem));
  bool good = rt_csv_read(table, &indices, "t.csv", text, strlen(text), problem);
  rt_indices_free(&indices);
  return good;
}

/* The first column is an index, or the second a class. */
static bool read_indices(const char *text, struct accel_index index, struct problem *problem) {
  const bool is_class = index.first == 1;
  const struct accel_input features = {"features", NULL, ACCEL_FLOAT32, 1, 0, 0, false};
  const struct accel_input labels = {"labels",   NULL,    is_class ? ACCEL_INT32 : ACCEL_FLOAT32, 1, index.below,
                                     index.none, is_class};
  const struct accel_input inputs[] = {features, labels};
  struct accel_program program = {.inputs = inputs, .n_inputs = 2, .indices = &index, .n_indices = is_class ? 0 : 1};
  struct table table;
  bool good = read_program(text, &program, &table, problem);
  rt_table_free(&table);
  return good;
}

/* Numbers as they are written, with the line and the column where they stand. */
static void indices_of_text(void **state) {
  struct accel_index id = {0, 1, 10, 0}, class = {1, 1, 3, -100}, classes = {1, 1, 16777217, 0}, far = {1, 1, 21, 255};
  const struct {
    const char *text, *what;
    struct accel_index index;
  } bad[] =
      {
          {"a,b\n9,0\n\n10,1\n", "t.csv: line 4, column 1: 10 is not a whole number below 10 from 0 on", id},
          {"-1,0\n", "t.csv: line 1, column 1: -1 is not a whole number below 10 from 0 on", id},
          {"0.5,0\n", "t.csv: line 1, column 1: 0.5 is not a whole number below 10 from 0 on", id},
          {"2.99999999,0\n", "t.csv: line 1, column 1: 2.99999999 is not a whole number below 10 from 0 on", id},
          {"-100,0\n", "t.csv: line 1, column 1: -100 is not a whole number below 10 from 0 on", id},
          {"1,2\n1,3\n", "t.csv: line 2: label 3 is not a class number below 3, nor -100, which the loss leaves out",
           class},
          {"1,16777217\n", "t.csv: line 1: label 16777217 is not a class number below 16777217", classes},
      },
    good[] = {{"9,0.5\n0,1\n-0,1\n3.0,1\n", NULL, id}, {"7,-100\n7,2\n", NULL, class}, {"7,255\n7,20\n", NULL, far}};
  struct problem problem;
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_false(read_indices(bad[i].text, bad[i].index, &problem));
    assert_string_equal(problem.what, bad[i].what);
    assert_true(problem.help[0] != '\0');
  }
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assert_true(read_indices(good[i].text, good[i].index, &problem));
  }
}

/* The same of arrays, whose rows are numbered from 1. */
static void indices_of_arrays(void **state) {
  static const int64_t features[] = {0, 5, 1, 29, 2, INT64_C(1) << 32}, labels[] = {0, -100, 2};
  struct accel_input inputs[] = {{"features", NULL, ACCEL_FLOAT32, 2, 0, 0, false},
                                 {"labels", NULL, ACCEL_INT32, 1, 3, -100, true}};
  const struct accel_index second = {1, 1, 30, 0};
  struct accel_program program = {.inputs = inputs, .n_inputs = 2, .indices = &second, .n_indices = 1};
  struct rows rows = rt_rows_begin(&program);
  struct indices indices;
  struct problem problem;
  (void)state;
  rows.count = 3;
  rows.fields[0] = (struct field){NPY_I8, (const uint8_t *)features, 2, "x.npy"};
  rows.fields[1] = (struct field){NPY_I8, (const uint8_t *)labels, 1, "y.npy"};
  assert_true(rt_indices_of(&indices, &program, NULL, &problem));
  assert_true(rt_rows_check(&rows, 0, 2, &indices, &problem));
  assert_false(rt_rows_check(&rows, 0, 3, &indices, &problem));
  assert_string_equal(problem.what, "x.npy: row 3, column 2: 4294967296 is not a whole number below 30 from 0 on");
  rt_indices_free(&indices);
  inputs[1].none = 0;
  assert_true(rt_indices_of(&indices, &program, NULL, &problem));
  assert_false(rt_rows_check(&rows, 0, 3, &indices, &problem));
  assert_string_equal(problem.what, "y.npy: row 2: label -100 is not a class number below 3");
  rt_indices_free(&indices);
}

/* Inputs by the names of a header, next to columns that hold anything; whole numbers stay whole. */
static void named_columns(void **state) {
  static const struct accel_input inputs[] = {{"price", "price", ACCEL_FLOAT32, 1, 0, 0, false},
                                              {"brand", "the \"brand\"", ACCEL_INT32, 1, 1 << 30, -100, true},
                                              {"any", "any", ACCEL_INT32, 1, 0, 0, false}};
  static const char text[] = "any,note,\"the \"\"brand\"\"\",price\n-7,\"a, \"\"b\"\"\n\",16777217,0.5\n"
                             "0,12\" wide,-100,1\n4,13\" wide,5,1\n";
  const struct accel_program program = {.inputs = inputs, .n_inputs = 3};
  const struct {
    const char *text, *what;
  } bad[] = {
      {"any,price\n", "t.csv: line 1: no column is named 'the \"brand\"'"},
      {"any,price,price,\"the \"\"brand\"\"\"\n", "t.csv: line 1: two columns are named 'price'"},
      {"any,price,\"the \"\"brand\"\"\"\n1,2\n", "t.csv: line 2: fewer than 3 columns"},
      {"any,price,\"the \"\"brand\"\"\"\n1,2,x\n", "t.csv: line 2, column 3: 'x' is not a finite decimal number"},
      {"any,price,\"the \"\"brand\"\"\"\n1.5,2,3\n",
       "t.csv: line 2, column 'any': 1.5 is not a whole number of 32 bits"},
      {"any,price,\"the \"\"brand\"\"\"\n1,2,1073741824\n",
       "t.csv: line 2, column 'the \"brand\"': 1073741824 is not a whole number below 1073741824 from 0 on, nor -100, "
       "which "
       "the loss leaves out"},
  };
  struct problem problem;
  struct table table;
  (void)state;
  assert_true(read_program(text, &program, &table, &problem));
  assert_int_equal(table.rows, 3); /* quotes within a cell open none */
  const int32_t *cells = (const int32_t *)table.cells;
  assert_int_equal(cells[1], 16777217);
  assert_int_equal(cells[2], -7);
  assert_int_equal(cells[4], -100);
  assert_int_equal(cells[8], 4);
  rt_table_free(&table);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_false(read_program(bad[i].text, &program, &table, &problem));
    assert_string_equal(problem.what, bad[i].what);
  }
}

/* A line that is no row ends the reading where that is clear, and a text of many rows is read whole. */
static void long_texts(void **state) {
  enum { BYTES = 64 << 20, ROWS = 300000 };
  struct problem problem;
  struct table table;
  char *text = calloc(1, BYTES); /* its pages are of the system's zeros until they are written to */
  (void)state;
  assert_false(read_bytes(&table, 2, text, BYTES, &problem));
  assert_string_equal(problem.what, "t.csv: line 1: longer than 66048 bytes, which no row of 2 numbers is");
  memcpy(text, "1,2\n", 4);
  assert_false(read_bytes(&table, 2, text, BYTES, &problem));
  assert_string_equal(problem.what, "t.csv: line 2: longer than 66048 bytes, which no row of 2 numbers is");
  for (int i = 0; i < ROWS; i++) memcpy(text + 4 * i, i == ROWS - 1 ? "7,8\n" : "1,2\n", 4);
  assert_true(read_bytes(&table, 2, text, (size_t)4 * ROWS, &problem));
  assert_int_equal(table.rows, ROWS);
  assert_true(((const float *)table.cells)[2 * ROWS - 1] == 8);
  rt_table_free(&table);
  free(text);
}

/* An array without rows has dimensions of any size. */
static void empty_arrays(void **state) {
  struct npy features = {.type = NPY_F4, .rank = 4, .shape = {0, INT64_C(1) << 60, INT64_C(1) << 60, 3}};
  struct accel_program program = {.inputs = of_columns[3], .n_inputs = 2};
  struct rows rows = rt_rows_begin(&program);
  struct problem problem;
  (void)state;
  assert_false(rt_rows_add_array(&rows, 0, &features, "x.npy", &problem));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values),          cmocka_unit_test(empty_texts),       cmocka_unit_test(bad_texts),
      cmocka_unit_test(indices_of_text), cmocka_unit_test(indices_of_arrays), cmocka_unit_test(long_texts),
      cmocka_unit_test(named_columns),   cmocka_unit_test(empty_arrays)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
