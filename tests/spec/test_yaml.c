/* YAML text to a tree: scalars, positions, aliases, and what is refused. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "gen/spec/pattern.h"
#include "gen/spec/scalar.h"
#include "gen/spec/yaml.h"

static struct arena *arena;
static struct diagnostics diags;

static const struct spec_node *parse(const char *text) {
  diags = diagnostics_in(arena);
  struct spec_source *source = source_of(arena, "job.yaml", text, strlen(text), false, &diags);
  return source == NULL ? NULL : yaml_parse(arena, source, &diags);
}

/* The core schema's tables, YAML 1.2.2 section 10.3.2, and words that only YAML 1.1 took for something. */
static void scalars(void **state) {
  static const struct {
    const char *text;
    enum spec_kind kind;
    double value;
  } cases[] = {
      {"null", SPEC_NULL, 0},        {"~", SPEC_NULL, 0},       {"Null", SPEC_NULL, 0},
      {"nULL", SPEC_STRING, 0},      {"true", SPEC_BOOL, 1},    {"False", SPEC_BOOL, 0},
      {"tRUE", SPEC_STRING, 0},      {"no", SPEC_STRING, 0},    {"yes", SPEC_STRING, 0},
      {"on", SPEC_STRING, 0},        {"n", SPEC_STRING, 0},     {"0", SPEC_INT, 0},
      {"-19", SPEC_INT, -19},        {"+12", SPEC_INT, 12},     {"010", SPEC_INT, 10},
      {"0o17", SPEC_INT, 15},        {"0xFf", SPEC_INT, 255},   {"-0x1", SPEC_STRING, 0},
      {"0o8", SPEC_STRING, 0},       {"0x", SPEC_STRING, 0},    {"1_000", SPEC_STRING, 0},
      {"0b1", SPEC_STRING, 0},       {"1:30", SPEC_STRING, 0},  {"6e-4", SPEC_REAL, 6e-4},
      {"1e3", SPEC_REAL, 1000},      {".5", SPEC_REAL, .5},     {"2.", SPEC_REAL, 2},
      {"-1.5E+2", SPEC_REAL, -150},  {".", SPEC_STRING, 0},     {"e3", SPEC_STRING, 0},
      {"1e", SPEC_STRING, 0},        {"1.2.3", SPEC_STRING, 0}, {"-.inf", SPEC_REAL, -HUGE_VAL},
      {".Inf", SPEC_REAL, HUGE_VAL}, {"inf", SPEC_STRING, 0},   {"nan", SPEC_STRING, 0},
      {"0x1p3", SPEC_STRING, 0},     {"-", SPEC_STRING, 0},     {"+", SPEC_STRING, 0},
      {"- .inf", SPEC_STRING, 0},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct spec_node node = {.text = cases[i].text, .length = strlen(cases[i].text)};
    scalar_resolve(&node);
    if (node.kind != cases[i].kind) fail_msg("'%s' is of kind %d", cases[i].text, (int)node.kind);
    if (node.kind == SPEC_INT) assert_true(node.integer == (int64_t)cases[i].value);
    if (node.kind == SPEC_BOOL) assert_true(node.integer == (int64_t)cases[i].value);
    if (node.kind == SPEC_INT || node.kind == SPEC_REAL) assert_true(node.real == cases[i].value);
  }
}

static void large_integers(void **state) {
  struct spec_node most = {.text = "9223372036854775807", .length = 19},
                   more = {.text = "9223372036854775808", .length = 19};
  (void)state;
  scalar_resolve(&most);
  scalar_resolve(&more);
  assert_true(most.integer == INT64_MAX && !most.wide);
  assert_true(more.wide && more.real == 9223372036854775808.0);
}

static void quoted_and_tagged(void **state) {
  const struct spec_node *root = parse("a: '1'\nb: !!str 1\nc: !!float 1\nd: ! 1\ne: !!int '7'\nf: |\n  1\n");
  (void)state;
  assert_int_equal(diags.errors, 0);
  assert_int_equal(spec_find(root, "a")->kind, SPEC_STRING);
  assert_int_equal(spec_find(root, "b")->kind, SPEC_STRING);
  assert_int_equal(spec_find(root, "c")->kind, SPEC_REAL);
  assert_int_equal(spec_find(root, "d")->kind, SPEC_STRING);
  assert_int_equal(spec_find(root, "e")->integer, 7);
  assert_string_equal(spec_find(root, "f")->text, "1\n");
}

static void assert_place(struct location where, int line, int column, int length) {
  assert_int_equal(where.line, line);
  assert_int_equal(where.column, column);
  assert_int_equal(where.length, length);
}

/* Columns are bytes, and only a newline ends a line, whatever YAML thinks of U+0085 and U+2028. */
static void positions(void **state) {
  const struct spec_node *root = parse("one: 12\r\nt\xc3\xb6: {a: \"x\xe2\x80\xa8y\", bc: [1, 234]}\n");
  (void)state;
  assert_place(spec_find(root, "one")->where, 1, 6, 2);
  const struct spec_entry *group = spec_entry(root, "t\xc3\xb6");
  assert_place(group->key_where, 2, 1, 3);
  assert_place(spec_entry(group->value, "bc")->key_where, 2, 19, 2);
  assert_place(spec_find(group->value, "bc")->entries[1].value->where, 2, 27, 3);
}

static void byte_order_mark(void **state) {
  const struct spec_node *root = parse("\xef\xbb\xbf"
                                       "a: 1\nb: 2\n");
  (void)state;
  assert_place(spec_entry(root, "a")->key_where, 1, 4, 1);
  assert_place(spec_entry(root, "b")->key_where, 2, 1, 1);
}

static void aliases(void **state) {
  const struct spec_node *root = parse("a: &x {k: 1}\nb: *x\nc: &x 3\nd: *x\n");
  (void)state;
  assert_int_equal(diags.errors, 0);
  assert_int_equal(spec_find(root, "b.k")->integer, 1);
  assert_int_equal(spec_find(root, "d")->integer, 3);
  assert_place(spec_find(root, "b")->where, 2, 4, 2);
}

/* As many values as allowed, but no more, whether written or multiplied. */
static void laughs(void **state) {
  struct text text = text_in(arena);
  (void)state;
  text_puts(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
  for (int i = 1; i < 12; i++)
    text_printf(&text, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1);
  assert_null(parse(text_string(&text)));
  assert_int_equal(diags.errors, 1);
  assert_non_null(strstr(diags.items[0].message, "too many values"));
}

static void refused(void **state) {
  static const char *const texts[] = {"a: 1\na: 2\n",
                                      "a: &x [*x]\n",
                                      "a: *x\n",
                                      "a: !foo 1\n",
                                      "a: !!binary aGk=\n",
                                      "--- 1\n--- 2\n",
                                      "? {b: 1}\n: 2",
                                      "? [b]\n: 2",
                                      "a: [1\n",
                                      "a: \xff\n",
                                      "a: \x7f\n",
                                      "%YAML 3.0\n--- 1\n",
                                      "!!str a: 1\n",
                                      "&x a: 1\n",
                                      "# none\n",
                                      "a: \xc2\x9b\n",
                                      "a: 'b\n"};
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    parse(texts[i]);
    if (diags.errors == 0) fail_msg("no error in: %s", texts[i]);
  }
}

static void patterns(void **state) {
  static const char name[] = "^[A-Za-z_][A-Za-z0-9_]*$", field[] = "^[A-Za-z_][A-Za-z0-9_.]*$",
                    path[] = "^[^\\x00-\\x1f\\x7f]*$", size[] = "^[1-9][0-9]*[KMGT][B]$",
                    memory[] = "^[1-9][0-9]*[KMGT][i]*[B]$";
  (void)state;
  assert_true(pattern_matches(name, "n_layer2", 8));
  assert_false(pattern_matches(name, "2n", 2));
  assert_false(pattern_matches(name, "", 0));
  assert_false(pattern_matches(name, "a-b", 3));
  assert_false(pattern_matches(name, "a\n", 2));
  assert_true(pattern_matches(field, "rope.theta", 10));
  assert_false(pattern_matches(field, ".theta", 6));
  assert_true(pattern_matches(path, "dir/\xc3\xa4.txt", 10));
  assert_true(pattern_matches(path, "", 0));
  assert_false(pattern_matches(path, "a\0b", 3));
  assert_false(pattern_matches(path, "a\n", 2));
  assert_true(pattern_matches(size, "10GB", 4));
  assert_false(pattern_matches(size, "GB", 2));
  assert_false(pattern_matches(size, "10GiB", 5));
  assert_true(pattern_matches(memory, "10GiB", 5));
  assert_true(pattern_matches(memory, "10GB", 4));
  assert_false(pattern_matches(memory, "10Gi", 4));
}

/* What is written reads back as the same. */
static void written(void **state) {
  static const char *const words[] = {
      "no",           "true", "12", "1e3", "",        "a b",  "x: y", "# z",      "\"q\"",         "\\n",
      "\n",           "~",    "-",  "- a", ".",       "..",   "@a",   "\xc3\xa4", "a\xe2\x80\xa8", "\xc2\x85",
      "\xef\xbb\xbf", "---",  "'",  "[",   "\x1b[0m", "0x1f", "1_0"};
  (void)state;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    struct spec_node value = {.kind = SPEC_STRING, .text = words[i], .length = strlen(words[i])};
    struct spec_entry entry = {.key = words[i], .value = &value};
    struct spec_node map = {.kind = SPEC_MAP, .entries = &entry, .count = 1};
    struct text text = text_in(arena);
    spec_write(&text, &map);
    const struct spec_node *root = parse(text_string(&text));
    if (root == NULL || root->count != 1) fail_msg("cannot read back: %s", text_string(&text));
    assert_string_equal(root->entries[0].key, words[i]);
    assert_int_equal(root->entries[0].value->kind, SPEC_STRING);
    assert_string_equal(root->entries[0].value->text, words[i]);
  }
}

static void numbers(void **state) {
  static const double values[] = {0, 1, -3, 0.1, 1e-8, 6e-4, 1e300, 5e-324, 1.0 / 3, 123456789012345678.0, 1e15, 1e14};
  (void)state;
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    struct spec_node node = {.text = spec_number(arena, values[i], true)};
    node.length = strlen(node.text);
    scalar_resolve(&node);
    if (node.kind != SPEC_REAL || node.real != values[i]) fail_msg("%.17g is written %s", values[i], node.text);
  }
  assert_string_equal(spec_number(arena, 100, false), "100");
  assert_string_equal(spec_number(arena, 100, true), "100.0");
}

static int start(void **state) {
  (void)state;
  arena = arena_new();
  return 0;
}

static int stop(void **state) {
  (void)state;
  arena_free(arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scalars),   cmocka_unit_test(large_integers),  cmocka_unit_test(quoted_and_tagged),
      cmocka_unit_test(positions), cmocka_unit_test(byte_order_mark), cmocka_unit_test(aliases),
      cmocka_unit_test(laughs),    cmocka_unit_test(refused),         cmocka_unit_test(patterns),
      cmocka_unit_test(written),   cmocka_unit_test(numbers),
  };
  return cmocka_run_group_tests_name("yaml", tests, start, stop);
}
