/* Tables: what is read, and what every bad text is told. */
#include "cmocka_all.h"

#include "runtime/data/rows.h"

#include <string.h>

static bool read_text(struct table *table, int columns, const char *text, struct problem *problem) {
  return rt_csv_read(table, columns, "t.csv", text, strlen(text), problem);
}

static void values(void **state) {
  static const float wanted[] = {1, 2.5f, 0, -3e-2f, 4, 1};
  static const char *const texts[] = {
      "a,b,label\n1,2.5,0\n-3e-2,4,1\n",
      "1,2.5,0\n-3e-2,4,1",
      "\xef\xbb\xbf a , b,c\r\n1 ,\t2.5,0\r\n\r\n-0.03,+4,1\r\n",
      "x1,2,3\n1,2.5,0\n\n  \n-.03,4.,1\n\n",
  };
  struct problem problem;
  struct table table;
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_true(read_text(&table, 3, texts[i], &problem));
    assert_int_equal(table.rows, 2);
    assert_memory_equal(table.values, wanted, sizeof wanted);
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
      {"1,2\n\"3\",4\n", "t.csv: line 2, column 1: '\"3\"' is not a finite decimal number"},
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

static bool are_classes(const struct table *table, int64_t classes, struct problem *problem) {
  struct rows rows = rt_rows_of_table(table);
  return rt_rows_check_classes(&rows, classes, "t.csv", problem);
}

static void classes(void **state) {
  static const char *const bad[] = {"1,3\n", "1,-1\n", "1,0.5\n", "1,16777218\n"};
  struct problem problem;
  struct table table;
  (void)state;
  assert_true(read_text(&table, 2, "1,0\n1,2\n", &problem));
  assert_true(are_classes(&table, 3, &problem));
  assert_false(are_classes(&table, 2, &problem));
  assert_string_equal(problem.what, "t.csv: data row 2: label 2 is not a class number below 2");
  rt_table_free(&table);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_true(read_text(&table, 2, bad[i], &problem));
    assert_false(are_classes(&table, i == 0 ? 3 : 0, &problem));
    rt_table_free(&table);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(empty_texts),
                                     cmocka_unit_test(bad_texts), cmocka_unit_test(classes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
