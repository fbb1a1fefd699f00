/* What a model says of the tensors that it takes: its function published_inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "gen/model/sample.h"
#include "tests/model/reading.h"

/* A model whose function has these lines, with width=3 for its config. */
static bool sample_of(struct arena *arena, const char *function, struct sample_tensors *sample, const char **said) {
  struct diagnostics diags = diagnostics_in(arena);
  struct model_options options = {.entry = "model"};
  const char *text = arena_printf(arena,
                                  "#include <accel/model.h>\n"
                                  "struct config { int width; };\n"
                                  "%s\n"
                                  "tensor model(scope s, struct config c, tensor features, tensor labels) {\n"
                                  "  return cross_entropy(linear(s, features, c.width), labels);\n"
                                  "}\n",
                                  function);
  const struct tree *model = model_parse_text(arena, "small.c", text, &diags);
  options_add_config(arena, &options, "width=3");
  const struct model_request request = {.entry = "model", .config = options.config, .n_config = options.n_config};
  const bool read = model != NULL && model_sample(arena, model, &request, sample, &diags);
  *said = printed(arena, &diags);
  return read;
}

static void shapes_follow_from_the_config(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  struct sample_tensors sample;
  const char *said;
  assert_true(sample_of(arena,
                        "struct published_inputs published_inputs(struct config c) {\n"
                        "  int half = c.width / 2;\n"
                        "  return (struct published_inputs){{{\"pictures\", {c.width, 4 + half}},\n"
                        "                                    {\"label\", .whole = c.width > 1}}};\n"
                        "}",
                        &sample, &said));
  assert_string_equal(said, "");
  assert_int_equal(sample.count, 2);
  assert_string_equal(sample.items[0].name, "pictures");
  assert_int_equal(sample.items[0].shape.rank, 2);
  assert_int_equal(sample.items[0].shape.dim[0], 3);
  assert_int_equal(sample.items[0].shape.dim[1], 5);
  assert_false(sample.items[0].whole);
  assert_string_equal(sample.items[1].name, "label");
  assert_int_equal(sample.items[1].shape.rank, 0);
  assert_true(sample.items[1].whole);
  assert_true(sample_of(arena, "", &sample, &said)); /* no function: nothing is known */
  assert_int_equal(sample.count, 0);
  arena_free(arena);
}

static void what_says_no_shapes_is_refused(void **state) {
  static const struct {
    const char *function, *problem;
  } cases[] = {
      {"int published_inputs(struct config c) { return c.width; }", "returns no struct published_inputs"},
      {"struct published_inputs published_inputs(int n) { return (struct published_inputs){{{\"x\", {n}}}}; }",
       "does not take the config alone"},
      {"struct published_inputs published_inputs(struct config c) { return (struct published_inputs){{{\"x\", {-1}}}}; "
       "}",
       "an extent that is not above 0"},
      {"struct published_inputs published_inputs(struct config c) { return (struct published_inputs){{{\"x\", {1 / "
       "(c.width - "
       "3)}}}}; }",
       "zero"},
  };
  struct arena *arena = arena_new();
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct sample_tensors sample;
    const char *said;
    assert_false(sample_of(arena, cases[i].function, &sample, &said));
    if (strstr(said, cases[i].problem) == NULL) fail_msg("%s: %s", cases[i].function, said);
  }
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes_follow_from_the_config),
      cmocka_unit_test(what_says_no_shapes_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
