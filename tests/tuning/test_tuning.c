/* Tables of measurements: what is put in is found, also in the text that is written of it, and nothing stands twice. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/tuning/tuning.h"

static const struct tuned_machine machine = {"A processor", 2};

static struct tuning *read_again(struct arena *arena, const struct tuning *tuning) {
  struct diagnostics diags = diagnostics_in(arena);
  const char *text = tuning_text(tuning);
  struct tuning *again = tuning_parse(arena, "again.json", text, strlen(text), &machine, &diags);
  if (again == NULL) diag_print(&diags, stderr, false);
  assert_non_null(again);
  return again;
}

static struct tuning *empty(struct arena *arena) {
  struct tuning *tuning = tuning_new(arena);
  tuning->machine = machine;
  return tuning;
}

static void test_put_and_found_again(void **state) {
  struct arena *arena = arena_new();
  struct tuning *tuning = empty(arena);
  const struct tuned matmul = {"matmul", 2, 123456789012, 1585152, {0}};
  (void)state;
  for (int round = 0; round < 3; round++) {
    tuning_put(tuning, &matmul, "library", 1.5e-5);
    tuning_put(tuning, &matmul, "blocks", 1e-5 * (round + 2));
    tuning = read_again(arena, tuning);
    assert_int_equal(tuning->entries.count, 1);
    const struct tuned *found = tuning_find(tuning, "matmul", 2, 0);
    assert_non_null(found);
    assert_int_equal(found->variants.count, 2);
    assert_true(found->flops == matmul.flops && found->bytes == matmul.bytes);
    assert_true(fabs(tuned_seconds(found, "blocks") / (1e-5 * (round + 2)) - 1) < 1e-5);
    assert_true(tuned_seconds(found, "each") == 0);
  }
  assert_null(tuning_find(tuning, "matmul", 1, 0));
  assert_null(tuning_find(tuning, "matmu", 2, 0));
  arena_free(arena);
}

static void test_nearest_bytes(void **state) {
  struct arena *arena = arena_new();
  struct tuning *tuning = empty(arena);
  static const double sizes[] = {1000, 64000, 1e9};
  (void)state;
  for (int i = 0; i < 3; i++) tuning_put(tuning, &(struct tuned){"update", 2, 0, sizes[i], {0}}, "", 1e-3 * (i + 1));
  assert_int_equal(tuning->entries.count, 3);
  static const double queries[][2] = {{1, 0}, {1000, 0}, {7000, 0}, {9000, 1}, {7.9e6, 1}, {8.1e6, 2}, {1e12, 2}};
  for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
    assert_true(tuning_find(tuning, "update", 2, queries[i][0])->bytes == sizes[(int)queries[i][1]]);
  arena_free(arena);
}

/* Entries come out in one order, whatever order they went in. */
static void test_same_text(void **state) {
  struct arena *arena = arena_new();
  struct tuning *a = empty(arena), *b = empty(arena);
  static const struct tuned entries[] = {
      {"x", 1, 0, 0, {0}}, {"x", 2, 0, 0, {0}}, {"x", 2, 0, 8, {0}}, {"y", 1, 0, 0, {0}}};
  (void)state;
  for (int i = 0; i < 4; i++) {
    tuning_put(a, &entries[i], "", 1);
    tuning_put(b, &entries[3 - i], "", 1);
  }
  assert_string_equal(tuning_text(a), tuning_text(b));
  arena_free(arena);
}

/* This machine's name says something, and its table's path follows from it alone. */
static void test_machine(void **state) {
  struct arena *arena = arena_new();
  const struct tuned_machine here = tuning_machine(arena), other = {here.processor, here.cores + 1};
  (void)state;
  assert_true(here.cores >= 1 && here.processor[0] != '\0');
  setenv("XDG_CACHE_HOME", "/cache", 1);
  assert_string_equal(tuning_path(arena, &here), tuning_path(arena, &here));
  assert_string_not_equal(tuning_path(arena, &here), tuning_path(arena, &other));
  assert_int_equal(strncmp(tuning_path(arena, &here), "/cache/accel-gen/tuning-", 24), 0);
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/a", 1);
  assert_int_equal(strncmp(tuning_path(arena, &here), "/home/a/.cache/accel-gen/tuning-", 32), 0);
  unsetenv("HOME");
  assert_null(tuning_path(arena, &here));
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_put_and_found_again),
      cmocka_unit_test(test_nearest_bytes),
      cmocka_unit_test(test_same_text),
      cmocka_unit_test(test_machine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
