/* Programs as templates write them, and as they are when formatted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "gen/format/format.h"

/* What is formatted already stays as it is. */
static void expect(const char *text, const char *want) {
  struct arena *arena = arena_new();
  assert_string_equal(format_program(arena, text, strlen(text), false).text, want);
  assert_string_equal(format_program(arena, want, strlen(want), false).text, want);
  arena_free(arena);
}

static void blocks_are_indented(void **state) {
  (void)state;
  expect("struct a {\nfloat x;\n union {\nint y;\n};\n};\n\n\n\nvoid f(void) {\n\n      g();\n if (x) {\nh();\n\n} "
         "else {\ni();\n}\n}",
         "struct a {\n  float x;\n  union {\n    int y;\n  };\n};\n\nvoid f(void) {\n  g();\n  if (x) {\n    h();\n"
         "  } else {\n    i();\n  }\n}\n");
  expect("namespace device {\nint x;\n} // namespace device\nextern \"C\" void f(void) {\nx = 1;\n}",
         "namespace device {\nint x;\n} // namespace device\nextern \"C\" void f(void) {\n  x = 1;\n}\n");
  expect("void f(void) {\nswitch (x) {\ncase 1:\ny();\nbreak;\ndefault:\nz();\n}\ndo {\ny();\n} while (x);\n}",
         "void f(void) {\n  switch (x) {\n  case 1:\n    y();\n    break;\n  default:\n    z();\n  }\n  do {\n    "
         "y();\n  } while (x);\n}\n");
}

static void a_statement_joins_its_head_where_it_fits(void **state) {
  (void)state;
  expect("void f(void) {\nfor (;;)\nx();\nif (a)\nreturn;\n}",
         "void f(void) {\n  for (;;) x();\n  if (a) return;\n}\n");
  expect("void f(void) {\nif (a) x(); else y();\n}", "void f(void) {\n  if (a)\n    x();\n  else\n    y();\n}\n");
  expect("void f(void) {\nfor (;;) for (;;) x();\n}", "void f(void) {\n  for (;;)\n    for (;;) x();\n}\n");
  expect("void f(void) {\nfor (;;)\n#pragma omp simd\nfor (;;) x();\n}",
         "void f(void) {\n  for (;;)\n#pragma omp simd\n    for (;;) x();\n}\n");
}

#define LONG "a_name_of_forty_columns_in_all_a_name_of_"

static void long_lines_are_broken(void **state) {
  (void)state;
  expect("void f(void) {\n  call(" LONG "1, " LONG "2,\n" LONG "3, x);\n}",
         "void f(void) {\n  call(" LONG "1, " LONG "2,\n       " LONG "3, x);\n}\n");
  expect("void f(void) {\n  a_function_with_a_long_name_that_leaves_little_room(" LONG "1, " LONG "2, " LONG "3);\n}",
         "void f(void) {\n  a_function_with_a_long_name_that_leaves_little_room(" LONG "1,\n"
         "                                                      " LONG "2,\n"
         "                                                      " LONG "3);\n}\n");
  expect("void f(void) {\n  y = " LONG "1 * " LONG "2 + " LONG "3 * x;\n}",
         "void f(void) {\n  y = " LONG "1 * " LONG "2 +\n      " LONG "3 * x;\n}\n");
  expect("void f(void) {\n  y = some_condition ? " LONG "1 + 1 : " LONG "2 + " LONG "3;\n}",
         "void f(void) {\n  y = some_condition ? " LONG "1 + 1\n                     : " LONG "2 + " LONG "3;\n}\n");
}

static void what_fits_is_joined(void **state) {
  (void)state;
  expect("void f(\n  int a,\nint b) {\n  x =\na +\nb;\ng(\na,\nb\n);\n}",
         "void f(int a, int b) {\n  x = a + b;\n  g(a, b);\n}\n");
}

static void lists_that_end_in_a_comma_have_a_line_for_each_item(void **state) {
  (void)state;
  expect("static int x[] = {1,\n2, /* two */\n{3,\n4}, };",
         "static int x[] = {\n    1,\n    2, /* two */\n    {3, 4},\n};\n");
  expect("int x[] = { 1, { 2 } };", "int x[] = {1, {2}};\n");
  expect("enum { A,\nB };\nenum kind { A, B, };", "enum { A, B };\nenum kind {\n  A,\n  B,\n};\n");
  expect("struct a x = {.y = 1, .z = {.u = \"" LONG "\",\n.v = \"" LONG "\", .w = \"" LONG "\"},};",
         "struct a x = {\n    .y = 1,\n    .z = {.u = \"" LONG "\",\n          .v = \"" LONG
         "\",\n          .w = \"" LONG "\"},\n};\n");
}

static void declarations_are_broken_where_they_say_least(void **state) {
  (void)state;
  expect("template <int width> __global__ void __launch_bounds__(256) a_kernel(float *" LONG "1, float *" LONG
         "2) {\nx();\n}",
         "template <int width>\n__global__ void __launch_bounds__(256)\n    a_kernel(float *" LONG "1, float *" LONG
         "2) {\n  x();\n}\n");
}

static void comments_stay_as_they_are_written(void **state) {
  (void)state;
  expect("struct a {\nint x; /* one */\n  float longer;   /* two  words */\n\nint y; // three\n};",
         "struct a {\n  int x;        /* one */\n  float longer; /* two  words */\n\n  int y; // three\n};\n");
  expect("void f(void) {\n/* one\n* two */\nx();\n}", "void f(void) {\n  /* one\n   * two */\n  x();\n}\n");
  expect("/* " LONG " " LONG " ends here where it has room, but */",
         "/* " LONG " " LONG " ends here where it has room,\n * but */\n");
  expect("/* " LONG " " LONG " and stays " LONG "\n * two */", "/* " LONG " " LONG " and stays " LONG "\n * two */\n");
  expect("/* clang-format off */\nint  x[ ] =\n{1};\n/* clang-format on */\nint   y;",
         "/* clang-format off */\nint  x[ ] =\n{1};\n/* clang-format on */\nint y;\n");
}

static void directives_stay_where_they_are(void **state) {
  (void)state;
  expect("void f(void) {\n#pragma omp for\nfor (;;) x();\n}\n#define A(x)   \\\n  x +  1\nint y;",
         "void f(void) {\n#pragma omp for\n  for (;;) x();\n}\n#define A(x)   \\\n  x +  1\nint y;\n");
}

static void strings_follow_each_other_on_lines_of_their_own(void **state) {
  (void)state;
  expect("const char *x = \"a,  b\" \"{\";", "const char *x = \"a,  b\"\n                \"{\";\n");
}

static void what_does_not_match_is_carried_along(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  static const char *const texts[] = {"",      "}",          "{",     ")",        "if",     "if (",      "f(",   "else",
                                      "x = {", "x = {,",     "\"",    "'\\",      "/*",     "#",         "case", "do",
                                      "do {",  "template <", "a ? b", "for (;;)", "enum {", "enum { a, "};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const struct format_output output = format_program(arena, texts[i], strlen(texts[i]), true);
    size_t length = 0;
    for (size_t k = 0; k < output.length; k++) length += strchr(" \n", output.text[k]) == NULL;
    size_t want = 0;
    for (size_t k = 0; k < strlen(texts[i]); k++) want += texts[i][k] != ' ';
    assert_int_equal(length, want);
  }
  arena_free(arena);
}

static void moves_say_where_text_went(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  static const char text[] = "f(a,\nb);\n\n/* x\n* y */\n#define A \\\n  B\nint c;";
  const struct format_output output = format_program(arena, text, sizeof text - 1, true);
  assert_string_equal(output.text, "f(a, b);\n\n/* x\n * y */\n#define A \\\n  B\nint c;\n");
  const char *moves = "";
  for (int i = 0; i < output.count; i++)
    moves = arena_printf(arena, "%s%.*s:%d ", moves, (int)output.moves[i].length, text + output.moves[i].from,
                         output.moves[i].line);
  assert_string_equal(moves, "f:1 (:1 a:1 ,:1 b:1 ):1 ;:1 \n:2 /* x:3 * y */:4 #define A \\:5   B:6 int:7 c:7 ;:7 ");
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_indented),
      cmocka_unit_test(a_statement_joins_its_head_where_it_fits),
      cmocka_unit_test(long_lines_are_broken),
      cmocka_unit_test(what_fits_is_joined),
      cmocka_unit_test(lists_that_end_in_a_comma_have_a_line_for_each_item),
      cmocka_unit_test(declarations_are_broken_where_they_say_least),
      cmocka_unit_test(comments_stay_as_they_are_written),
      cmocka_unit_test(directives_stay_where_they_are),
      cmocka_unit_test(strings_follow_each_other_on_lines_of_their_own),
      cmocka_unit_test(what_does_not_match_is_carried_along),
      cmocka_unit_test(moves_say_where_text_went),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
