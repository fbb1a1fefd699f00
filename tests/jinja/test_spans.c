/* Source maps: which template wrote which part of the output, and from where. */
#include "tests/jinja/rendering.h"

static void expect_spans(struct bench *bench, const char *want) {
  if (!render(bench, true)) fail_msg("%s", bench->error.message);
  const char *text = "";
  for (int i = 0; i < bench->output.span_count; i++) {
    const struct jinja_span *span = &bench->output.spans[i];
    text = arena_printf(bench->arena, "%s%d:%d+%d %s\n", text, span->line, span->column, span->length,
                        chain_text(bench->arena, span->chain, span->chain_count));
  }
  assert_string_equal(text, want);
  arena_free(bench->arena);
}

static void test_spans_of_text_and_values(void **state) {
  (void)state;
  expect_spans(start("ab\ncd{{ 1 }}\n\nx"),
               "1:1+3 main:1:1\n2:1+2 main:2:1\n2:3+1 main:2:3\n2:4+1 main:2:10\n3:1+1 main:3:1\n4:1+1 main:4:1\n");
  expect_spans(start("{{ 'a\\nb' }}c"), "1:1+2 main:1:1\n2:1+1 main:1:1\n2:2+1 main:1:13\n");
}

static void test_spans_of_macros_and_includes(void **state) {
  (void)state;
  struct bench *bench = start("{% macro m(x) %}<{{ x }}>{% endmacro %}\n{{ m(5) }}{% include 'part' %}");
  add(bench, "part", "P{{ 1 }}");
  expect_spans(bench,
               "1:1+1 main:1:40\n2:1+1 main:1:17 < main:2:5\n2:2+1 main:1:18 < main:2:5\n2:3+1 main:1:25 < main:2:5\n"
               "2:4+1 part:1:1 < main:2:14\n2:5+1 part:1:2 < main:2:14\n");
}

static void test_spans_of_inheritance(void **state) {
  (void)state;
  struct bench *bench = start("{% extends 'base' %}{% block b %}{{ super() }}C{% endblock %}");
  add(bench, "base", "[{% block b %}B{% endblock %}]");
  expect_spans(bench, "1:1+1 base:1:1 < main:1:4\n1:2+1 base:1:15 < main:1:42 < base:1:5 < main:1:4\n"
                      "1:3+1 main:1:47 < base:1:5 < main:1:4\n1:4+1 base:1:30 < main:1:4\n");
}

static void test_spans_follow_captured_text(void **state) {
  (void)state;
  expect_spans(start("{% set s %}x{{ 1 }}{% endset %}{{ s }}{{ s|upper }}"),
               "1:1+1 main:1:12\n1:2+1 main:1:13\n1:3+1 main:1:12\n1:4+1 main:1:13\n");
}

/* What keeps a text's bytes keeps their writers; what is added was written by the expression. */
static void test_spans_survive_filters(void **state) {
  (void)state;
  expect_spans(start("{% set s %}a\n{{ 1 }}{% endset %}{{ s|indent(1) }}"),
               "1:1+1 main:1:12\n1:2+1 main:2:20\n2:1+1 main:2:20\n2:2+1 main:2:1\n");
  expect_spans(start("{% set s %} a\n{% endset %}{{ s|trim }}{{ 'x' ~ s|trim }}"),
               "1:1+1 main:1:13\n1:2+1 main:2:25\n1:3+1 main:1:13\n");
  expect_spans(start("{% filter indent(2) %}a\nb{% endfilter %}"),
               "1:1+1 main:1:23\n1:2+1 main:1:4\n2:1+2 main:1:4\n2:3+1 main:2:1\n");
  expect_spans(start("{% set s %}axb{% endset %}{{ s|replace('x', 'yy') }}"),
               "1:1+1 main:1:12\n1:2+2 main:1:27\n1:4+1 main:1:14\n");
}

/* Each span's items as "1" or "2 < 1", innermost first. */
static void test_spans_know_their_loops(void **state) {
  (void)state;
  struct bench *bench =
      start("{% macro m() %}x{% endmacro %}a{% for i in [1, 2] %}{% for k in [8] %}{{ m() }}"
            "{% endfor %}{{ i }}{% endfor %}{% set s %}{% for i in [3] %}y{% endfor %}{% endset %}{{ s }}");
  if (!render(bench, true)) fail_msg("%s", bench->error.message);
  const char *text = "";
  for (int i = 0; i < bench->output.span_count; i++) {
    const struct jinja_span *span = &bench->output.spans[i];
    for (int k = 0; k < span->item_count; k++)
      text = arena_printf(bench->arena, "%s%s%d", text, k > 0 ? "<" : "", (int)span->items[k].as.integer);
    text = arena_printf(bench->arena, "%s;", text);
  }
  assert_string_equal(text, ";8<1;1;8<2;2;3;");
  arena_free(bench->arena);
}

static void test_no_spans_unless_asked(void **state) {
  (void)state;
  struct bench *bench = start("x");
  assert_true(render(bench, false));
  assert_null(bench->output.spans);
  assert_int_equal(bench->output.span_count, 0);
  arena_free(bench->arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_spans_of_text_and_values), cmocka_unit_test(test_spans_of_macros_and_includes),
      cmocka_unit_test(test_spans_of_inheritance),     cmocka_unit_test(test_spans_follow_captured_text),
      cmocka_unit_test(test_spans_survive_filters),    cmocka_unit_test(test_spans_know_their_loops),
      cmocka_unit_test(test_no_spans_unless_asked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
