/* The template engine's interface, errors and limits. What templates mean is compared with Jinja2 in
 * differential.py. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/jinja/rendering.h"

static void expect_text(const char *text, const char *want) {
  struct bench *bench = start(text);
  if (!render(bench, false)) fail_msg("%s: %s", text, bench->error.message);
  assert_string_equal(bench->output.text, want);
  assert_int_equal(bench->output.length, strlen(want));
  arena_free(bench->arena);
}

static void expect_error(struct bench *bench, const char *message, const char *chain) {
  assert_false(render(bench, false));
  if (strstr(bench->error.message, message) == NULL) fail_msg("wanted \"%s\" in \"%s\"", message, bench->error.message);
  if (chain != NULL) assert_string_equal(chain_text(bench->arena, bench->error.chain, bench->error.chain_count), chain);
  arena_free(bench->arena);
}

/* "near" is what is next to the template that names it. */
static const char *join(void *context, const char *name, const char *parent) {
  (void)context;
  if (strcmp(name, "near") != 0) return name;
  return strcmp(parent, "a/user") == 0 ? "a/near" : "b/near";
}

static void test_join_path_names_what_is_loaded(void **state) {
  (void)state;
  struct bench *bench = start("{% include 'a/user' %}{% import 'near' as n %}{{ n.x }}{% include 'near' %}");
  bench->options.join_path = join;
  add(bench, "a/user", "{% include 'near' %}");
  add(bench, "a/near", "a");
  add(bench, "b/near", "{% set x = 1 %}b");
  assert_true(render(bench, false));
  assert_string_equal(bench->output.text, "a1b");
  arena_free(bench->arena);
}

static const char *module(void *context, const char *name) {
  (void)context;
  return strcmp(name, "g") == 0 ? "globals" : strcmp(name, "lost") == 0 ? "nowhere" : NULL;
}

/* As Jinja2's with env.globals["g"] = env.get_template("globals").module, from each template, unless it says otherwise.
 */
static void test_modules_are_global(void **state) {
  (void)state;
  struct bench *bench = start("{{ g.m(1) }}{% import 'other' as o %}{{ o.m() }}{% set g = 5 %}{{ g }}");
  bench->options.module = module;
  add(bench, "globals", "{% macro m(x) %}<{{ x }}{{ g is defined }}>{% endmacro %}");
  add(bench, "other", "{% macro m() %}{{ g.m(2) }}{{ none is defined and other is defined }}{% endmacro %}");
  assert_true(render(bench, false));
  assert_string_equal(bench->output.text, "<1True><2True>False5");
  arena_free(bench->arena);
  bench = start("{{ lost.m() }}");
  bench->options.module = module;
  expect_error(bench, "'nowhere' not found", NULL);
}

/* Values are those of the template alone, or global: of what it imports without context, too. */
static void test_values_may_be_global(void **state) {
  (void)state;
  for (int global = 0; global < 2; global++) {
    struct bench *bench = start("{% import 'other' as o %}{{ o.m() }}{% set x = 2 %}{{ o.m() }}{{ x }}");
    bench->options.global_values = global;
    add(bench, "other", "{% macro m() %}{{ x is defined and x }}{% endmacro %}");
    jinja_set(bench->arena, bench->values, "x", jinja_int(1));
    assert_true(render(bench, false));
    assert_string_equal(bench->output.text, global ? "112" : "FalseFalse2");
    arena_free(bench->arena);
  }
}

/* --- values --- */

static void test_values(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  struct jinja_value map = jinja_map(arena);
  char key[16];
  for (int i = 0; i < 100; i++) {
    snprintf(key, sizeof key, "key%d", i);
    jinja_set(arena, map, key, jinja_int(i));
  }
  jinja_set(arena, map, "key7", jinja_string(arena, "seven"));
  assert_int_equal(jinja_get(map, "key99").as.integer, 99);
  assert_int_equal(jinja_get(map, "key7").kind, JINJA_STRING);
  assert_int_equal(jinja_get(map, "other").kind, JINJA_UNDEFINED);
  assert_int_equal(jinja_get(jinja_none(), "x").kind, JINJA_UNDEFINED);
  arena_free(arena);
}

static void test_maps_keep_their_order(void **state) {
  (void)state;
  struct bench *bench = start("{% for k, v in m.items() %}{{ k }}{{ v }}{% endfor %}");
  struct jinja_value map = jinja_map(bench->arena);
  jinja_set(bench->arena, map, "z", jinja_int(1));
  jinja_set(bench->arena, map, "a", jinja_double(2.5));
  jinja_set(bench->arena, map, "z", jinja_bool(true));
  jinja_set(bench->arena, bench->values, "m", map);
  assert_true(render(bench, false));
  assert_string_equal(bench->output.text, "zTruea2.5");
  arena_free(bench->arena);
}

static void test_renders_again(void **state) {
  (void)state;
  struct bench *bench = start("{% macro m(a) %}<{{ a }}>{% endmacro %}{% for x in l %}{{ m(x) }}{% endfor %}");
  struct jinja_value list = jinja_list(bench->arena);
  for (int i = 0; i < 5; i++) jinja_push(bench->arena, list, jinja_int(i));
  jinja_set(bench->arena, bench->values, "l", list);
  assert_true(render(bench, false));
  const char *first = bench->output.text;
  for (int i = 0; i < 50; i++) {
    assert_true(render(bench, i % 2 == 0));
    assert_string_equal(bench->output.text, first);
  }
  arena_free(bench->arena);
}

/* Rendering never changes what it was given: the same values give the same text. */
static void test_outside_values_stay(void **state) {
  (void)state;
  static const char *const texts[] = {"{% do l.append(1) %}", "{% do l.pop() %}",  "{% do m.update(a=1) %}",
                                      "{% do m.clear() %}",   "{% do l.sort() %}", "{% do m.setdefault('q', 1) %}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct bench *bench = start(texts[i]);
    jinja_set(bench->arena, bench->values, "l", jinja_list(bench->arena));
    jinja_set(bench->arena, bench->values, "m", jinja_map(bench->arena));
    expect_error(bench, "cannot be changed", NULL);
  }
  expect_text("{% set l = [] %}{% do l.append(1) %}{{ l }}", "[1]");
}

static void test_locale_does_not_matter(void **state) {
  (void)state;
  static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C"};
  for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
    if (setlocale(LC_ALL, locales[i]) == NULL) continue;
    expect_text("{{ 1.5 + 0.25 }} {{ '%.2f' % 2.5 }} {{ '1.5'|float }} {{ 1e100 }}", "1.75 2.50 1.5 1e+100");
  }
  setlocale(LC_ALL, "C");
}

static void test_null_bytes_pass(void **state) {
  (void)state;
  struct bench *bench = start("{{ s }}{{ s|length }}");
  jinja_set(bench->arena, bench->values, "s", jinja_string_n(bench->arena, "a\0b", 3));
  assert_true(render(bench, false));
  assert_int_equal(bench->output.length, 4);
  assert_memory_equal(bench->output.text, "a\0b3", 4);
  arena_free(bench->arena);
}

/* --- errors --- */

static void test_syntax_errors_have_locations(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
    int line, column;
    const char *source;
  } cases[] = {
      {"a\n  {{ 1 + }}", "unexpected 'end of print statement'", 2, 10, "  {{ 1 + }}"},
      {"{% foo %}", "Encountered unknown tag 'foo'", 1, 4, "{% foo %}"},
      {"x\n{{ a|nofilter }}\ny", "No filter named 'nofilter'", 2, 6, "{{ a|nofilter }}"},
      {"{{ a is notest }}", "No test named 'notest'", 1, 9, "{{ a is notest }}"},
      {"{% if x %}\n\n", "Unexpected end of template", 2, 1, ""},
      {"{{ 'a }}", "unexpected char '''", 1, 4, "{{ 'a }}"},
      {"{{ (1] }}", "unexpected ']', expected ')'", 1, 6, "{{ (1] }}"},
      {"{{ 99999999999999999999 }}", "64 bits", 1, 4, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct bench *bench = start(cases[i].text);
    bench->env = jinja_env_new(bench->arena, &bench->options);
    assert_false(jinja_compile(bench->env, "main", &bench->error));
    if (strstr(bench->error.message, cases[i].message) == NULL) fail_msg("%s: %s", cases[i].text, bench->error.message);
    assert_int_equal(bench->error.chain_count, 1);
    assert_int_equal(bench->error.chain[0].line, cases[i].line);
    assert_int_equal(bench->error.chain[0].column, cases[i].column);
    if (cases[i].source != NULL) assert_string_equal(bench->error.source_line, cases[i].source);
    arena_free(bench->arena);
  }
}

static void test_missing_template(void **state) {
  (void)state;
  struct bench *bench = start("x");
  bench->env = jinja_env_new(bench->arena, &bench->options);
  assert_false(jinja_render(bench->env, "other", bench->values, false, &bench->output, &bench->error));
  assert_string_equal(bench->error.chain[0].template_name, "other");
  arena_free(bench->arena);
  expect_error(start("a\n{% include 'gone' %}"), "'gone' not found", "main:2:4");
}

static void test_error_chains(void **state) {
  (void)state;
  struct bench *bench = start("\n{% include 'a' %}");
  add(bench, "a", "{% import 'b' as b %}\n {{ b.m(1) }}");
  add(bench, "b", "{% macro m(x) %}\n{{ x.y.z }}{% endmacro %}");
  expect_error(bench, "'int object' has no attribute 'y'", "b:2:8 < a:2:8 < main:2:4");

  bench = start("{% extends 'base' %}\n{% block one %}{{ gone }}{% endblock %}");
  add(bench, "base", "{% block one %}{% endblock %}");
  expect_error(bench, "'gone' is undefined", "main:2:16 < base:1:4 < main:1:4");

  bench = start("{% include 'a' %}");
  add(bench, "a", "\n{{ 1 + }}");
  expect_error(bench, "unexpected", "a:2:8 < main:1:4");
}

static void test_strict_undefined(void **state) {
  (void)state;
  expect_error(start("{{ gone }}"), "'gone' is undefined", "main:1:1");
  expect_error(start("{% if gone %}{% endif %}"), "'gone' is undefined", "main:1:7");
  expect_error(start("{{ {'a': 1}.b }}"), "'dict object' has no attribute 'b'", NULL);
  expect_text("{{ gone is defined }}{{ gone|default('d') }}", "Falsed");
}

/* --- limits --- */

static struct bench *limited(const char *text) {
  struct bench *bench = start(text);
  bench->options.max_recursion = 30;
  bench->options.max_output = 1000;
  bench->options.max_steps = 10000;
  return bench;
}

static void test_recursion_ends(void **state) {
  (void)state;
  expect_error(limited("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "recurses too deeply", NULL);
  expect_error(limited("{% include 'main' %}"), "recurses too deeply", NULL);
  expect_error(limited("{% extends 'main' %}"), "recurses too deeply", NULL);
  expect_error(limited("{% import 'main' as m %}"), "recurses too deeply", NULL);
  expect_error(limited("{% block b %}{{ self.b() }}{% endblock %}"), "recurses too deeply", NULL);
  expect_error(limited("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"), "recurses too deeply", NULL);
  expect_error(limited("{% set l = [] %}{% do l.append(l) %}{{ l }}"), "recurses too deeply", NULL);
  expect_error(limited("{% set l = [] %}{% do l.append(l) %}{{ l|tojson }}"), "recurses too deeply", NULL);
}

/* Without small limits the defaults hold, and no stack overflows. */
static void test_default_recursion_ends(void **state) {
  (void)state;
  expect_error(start("{% macro m(a) %}{{ ((((((m(a + 1)|upper))))))|trim }}{% endmacro %}{{ m(1) }}"),
               "recurses too deeply", NULL);
  expect_text("{% set a = [] %}{% do a.append(a) %}{% set b = [] %}{% do b.append(b) %}{{ a == b }}", "False");
}

static void test_output_is_limited(void **state) {
  (void)state;
  struct bench *exact = limited("{{ 'x' * 1000 }}");
  assert_true(render(exact, false));
  assert_int_equal(exact->output.length, 1000);
  arena_free(exact->arena);
  expect_error(limited("{{ 'x' * 1000 }}y"), "output is too large", NULL);
  expect_error(limited("{{ 'x' * 1001 }}"), "output is too large", NULL);
  expect_error(limited("{% for i in range(99) %}0123456789abcdef{% endfor %}"), "output is too large", NULL);
  expect_error(limited("{% set s = 'x' * 600 %}{{ s ~ s }}"), "output is too large", NULL);
  expect_error(limited("{{ 'a'.center(99999999) }}"), "output is too large", NULL);
  expect_error(limited("{{ '%9999999d' % 5 }}"), "output is too large", NULL);
  expect_error(limited("{{ '{:9999999}'.format(5) }}"), "output is too large", NULL);
}

static void test_steps_are_limited(void **state) {
  (void)state;
  expect_error(limited("{% for i in range(200) %}{% for j in range(200) %}{% endfor %}{% endfor %}"), "too", NULL);
  expect_error(limited("{% for i in range(999999999) %}{% endfor %}"), "", NULL);
  expect_error(limited("{% set l = [1] * 999999 %}"), "too many steps", NULL);
  expect_error(limited("{% set l = [1] %}{% for x in l %}{% do l.append(1) %}{% endfor %}"), "too many steps", NULL);
  expect_error(limited("{{ [1, 2]|batch(99999999, 0)|list }}"), "too many steps", NULL);
}

static void test_digits_are_limited(void **state) {
  (void)state;
  expect_text("{{ '%.500s'|format('x' * 1000)|length }} {{ '{:.500}'.format('x' * 1000)|length }}", "500 500");
  expect_text("{{ '%.400d'|format(-7)|length }} {{ '%.400f'|format(1e300)|length }}", "401 702");
  const char *const numbers[] = {"'%.401d'|format(7)", "'%.401f'|format(1.5)", "'{:.99999999999}'.format(1.5)"};
  for (int i = 0; i < 3; i++) {
    struct bench *bench = start(numbers[i]);
    bench->texts.items[0] = arena_printf(bench->arena, "{{ %s }}", numbers[i]);
    expect_error(bench, "it can have 400", NULL);
  }
}

static void test_tuples_beyond_measure_have_no_hash(void **state) {
  (void)state;
  expect_error(
      start("{% set n = namespace(t=()) %}{% for i in range(2000) %}{% set n.t = (n.t,) %}{% endfor %}{{ {n.t: 1} }}"),
      "unhashable type: 'tuple'", NULL);
  expect_error(start("{% set n = namespace(t=()) %}{% for i in range(60) %}{% set n.t = (n.t, n.t) %}{% endfor %}{{ "
                     "[n.t]|unique|list }}"),
               "unhashable type: 'tuple'", NULL);
}

static void test_deep_nesting_is_refused(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  char *deep = arena_alloc(arena, 20001);
  memset(deep, '(', 20000);
  expect_error(start(arena_printf(arena, "{{ %s", deep)), "too", NULL);
  memset(deep, '-', 20000);
  expect_error(start(arena_printf(arena, "{{ %s1 }}", deep)), "too deeply", NULL);
  const char *sum = "1";
  for (int i = 0; i < 12; i++) sum = arena_printf(arena, "%s+%s", sum, sum);
  expect_error(start(arena_printf(arena, "{{ %s }}", sum)), "too long", NULL);
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_maps_keep_their_order),
      cmocka_unit_test(test_renders_again),
      cmocka_unit_test(test_outside_values_stay),
      cmocka_unit_test(test_locale_does_not_matter),
      cmocka_unit_test(test_null_bytes_pass),
      cmocka_unit_test(test_syntax_errors_have_locations),
      cmocka_unit_test(test_missing_template),
      cmocka_unit_test(test_join_path_names_what_is_loaded),
      cmocka_unit_test(test_modules_are_global),
      cmocka_unit_test(test_values_may_be_global),
      cmocka_unit_test(test_error_chains),
      cmocka_unit_test(test_strict_undefined),
      cmocka_unit_test(test_recursion_ends),
      cmocka_unit_test(test_default_recursion_ends),
      cmocka_unit_test(test_output_is_limited),
      cmocka_unit_test(test_steps_are_limited),
      cmocka_unit_test(test_digits_are_limited),
      cmocka_unit_test(test_tuples_beyond_measure_have_no_hash),
      cmocka_unit_test(test_deep_nesting_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
