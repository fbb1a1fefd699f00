/* Which lines two texts have in common. Oracle: the longest common subsequence by its table (Wagner, Fischer, J. ACM
 * 1974). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/base/difference.h"

static struct lines lines_in(struct arena *arena, const char *text) {
  return lines_of(arena, text, strlen(text));
}

/* The matches as a text: "0 - 2". */
static const char *matches(struct arena *arena, const char *a, const char *b) {
  struct lines one = lines_in(arena, a), other = lines_in(arena, b);
  const int *match = lines_match(arena, &one, &other);
  const char *text = "";
  for (int i = 0; i < one.count; i++)
    text =
        arena_printf(arena, "%s%s%s", text, i > 0 ? " " : "", match[i] < 0 ? "-" : arena_printf(arena, "%d", match[i]));
  return text;
}

static void test_lines(void **state) {
  struct arena *arena = arena_new();
  (void)state;
  assert_int_equal(lines_in(arena, "").count, 0);
  assert_int_equal(lines_in(arena, "a\n\nb").count, 3);
  assert_int_equal(lines_in(arena, "a\nb\n").count, 2);
  struct lines lines = lines_in(arena, "one\n\ntwo");
  assert_int_equal(lines.lengths[1], 0);
  assert_memory_equal(lines.starts[2], "two", 3);
  assert_int_equal(lines.lengths[2], 3);
  arena_free(arena);
}

static void test_known(void **state) {
  static const struct {
    const char *a, *b, *match;
  } cases[] = {
      {"", "a\n", ""},
      {"a\n", "", "-"},
      {"a\nb\nc\n", "a\nb\nc\n", "0 1 2"},
      {"a\nb\nc", "a\nb\nc\n", "0 1 2"},
      {"a\nb\nc\n", "a\nx\nc\n", "0 - 2"},
      {"a\nb\n", "x\na\nb\n", "1 2"},
      {"a\nb\nc\nd\n", "a\nd\n", "0 - - 1"},
      {"x\na\nb\nc\n", "a\nb\nc\nx\n", "- 0 1 2"}, /* one line moved: the longer run stays */
      {"}\n}\n}\n", "}\n}\n", "0 1 -"},
      {"f {\n}\ng {\n}\n", "g {\n}\nf {\n}\n", "- - 0 3"},
      {"a\nsame\nb\nsame\n", "same\nb\nsame\na\n", "- 0 1 2"},
      {"aa\n", "a\n", "-"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct arena *arena = arena_new();
    assert_string_equal(matches(arena, cases[i].a, cases[i].b), cases[i].match);
    arena_free(arena);
  }
}

static int longest_common(struct arena *arena, const char *a, int n, const char *b, int m) {
  int *row = arena_alloc(arena, ((size_t)m + 1) * sizeof *row);
  for (int i = 0; i < n; i++)
    for (int j = 0, diagonal = 0; j < m; j++) {
      int above = row[j + 1];
      row[j + 1] = a[i] == b[j] ? diagonal + 1 : above > row[j] ? above : row[j];
      diagonal = above;
    }
  return row[m];
}

/* A text whose lines are the letters. */
static const char *as_lines(struct arena *arena, const char *letters, int count) {
  char *text = arena_alloc(arena, 2 * (size_t)count + 1);
  for (int i = 0; i < count; i++) {
    text[2 * i] = letters[i];
    text[2 * i + 1] = '\n';
  }
  return text;
}

static int count_of(const char *letters, int first, int end, char letter) {
  int count = 0;
  for (int i = first; i < end; i++) count += letters[i] == letter;
  return count;
}

/* Whether both sides have a letter once between what they begin and end with alike: then that one goes first, and a
 * longer run may be left. */
static bool has_unique(const char *a, int n, const char *b, int m) {
  int first = 0;
  while (first < n && first < m && a[first] == b[first]) first++;
  for (; n > first && m > first && a[n - 1] == b[m - 1]; n--) m--;
  for (int i = first; i < n; i++)
    if (count_of(a, first, n, a[i]) == 1 && count_of(b, first, m, a[i]) == 1) return true;
  return false;
}

static void check_random(struct arena *arena, int alphabet) {
  char a[41], b[41];
  int n = rand() % 40, m = rand() % 40, matched = 0, last = -1;
  for (int i = 0; i < n; i++) a[i] = (char)('a' + rand() % alphabet);
  for (int i = 0; i < m; i++) b[i] = (char)('a' + rand() % alphabet);
  struct lines one = lines_in(arena, as_lines(arena, a, n)), other = lines_in(arena, as_lines(arena, b, m));
  const int *match = lines_match(arena, &one, &other);
  for (int i = 0; i < n; i++) {
    if (match[i] < 0) continue;
    assert_true(match[i] > last && match[i] < m); /* in the same order */
    assert_int_equal(a[i], b[match[i]]);
    last = match[i];
    matched++;
  }
  int most = longest_common(arena, a, n, b, m);
  assert_true(matched <= most);
  if (!has_unique(a, n, b, m)) assert_int_equal(matched, most);
}

static void test_random(void **state) {
  const char *seed = getenv("SEED");
  (void)state;
  printf("# SEED=%s\n", seed != NULL ? seed : "1");
  srand(seed != NULL ? (unsigned)strtoul(seed, NULL, 10) : 1);
  for (int round = 0; round < 3000; round++) {
    struct arena *arena = arena_new();
    check_random(arena, 1 + rand() % 12);
    arena_free(arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lines),
      cmocka_unit_test(test_known),
      cmocka_unit_test(test_random),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
