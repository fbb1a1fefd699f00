/* The reader's interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "gen/base/embedded.h"
#include "gen/ir/op.h"
#include "gen/model/evaluate.h"
#include "gen/model/foreign.h"
#include "tests/model/reading.h"

static const char small[] = "#include <accel/model.h>\n"
                            "struct config { int width; };\n"
                            "static tensor score(scope s, tensor x, int width) { return linear(s, x, width); }\n"
                            "tensor predict(scope s, struct config c, tensor features) {\n"
                            "  return score(at(s, \"score\"), features, c.width);\n"
                            "}\n"
                            "tensor model(scope s, struct config c, tensor features, tensor labels) {\n"
                            "  return cross_entropy(predict(s, c, features), labels);\n"
                            "}\n";

static void one_parse_serves_many_entries(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const struct tree *program = model_parse_text(arena, "small.c", small, &diags);
  assert_non_null(program);
  assert_true(model_has(program, "model"));
  assert_true(model_has(program, "predict"));
  assert_false(model_has(program, "generate"));
  struct model_options options = {.entry = "predict"};
  options_add_config(arena, &options, "width=3");
  const struct graph *predict = read_graph(arena, program, &options, &diags);
  assert_non_null(predict);
  assert_int_equal(predict->entry->results.items[0]->shape.dim[1], 3);
  options = (struct model_options){.entry = "model"};
  options_add_config(arena, &options, "width=5");
  const struct graph *model = read_graph(arena, program, &options, &diags);
  assert_non_null(model);
  assert_int_equal(model->entry->results.items[0]->shape.rank, 0);
  assert_int_equal(diags.errors, 0);
  assert_int_equal(diags.count, 0);
  arena_free(arena);
}

static void an_error_leaves_the_parse_usable(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const struct tree *program = model_parse_text(arena, "small.c", small, &diags);
  struct model_options options = {.entry = "model"};
  assert_null(read_graph(arena, program, &options, &diags));
  assert_int_equal(diags.errors, 1);
  options_add_config(arena, &options, "width=3");
  assert_non_null(read_graph(arena, program, &options, &diags));
  assert_int_equal(diags.errors, 1);
  arena_free(arena);
}

static void the_same_model_gives_the_same_graph(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  const char *texts[2];
  for (int i = 0; i < 2; i++) {
    struct diagnostics diags = diagnostics_in(arena);
    const struct tree *program = model_parse(arena, "examples/models/gpt2.c", &diags);
    struct model_options options = {.entry = "model"};
    options_add_config(arena, &options, "n_layer=3 n_head=2 n_embd=8 vocab_size=256 block_size=64");
    texts[i] = graph_text(arena, read_graph(arena, program, &options, &diags));
  }
  assert_string_equal(texts[0], texts[1]);
  arena_free(arena);
}

static void a_model_without_config_or_file(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  assert_null(model_parse(arena, "tests/model/no_such_file.c", &diags));
  assert_int_equal(diags.errors, 1);
  assert_non_null(strstr(printed(arena, &diags), "no_such_file.c: error: cannot read it: No such file"));
  assert_null(model_parse(arena, "tests/model", &diags));
  assert_int_equal(diags.errors, 2);
  arena_free(arena);
}

static const char *all_headers(struct arena *arena) {
  return arena_printf(arena, "%s%s%s", embedded_source("include/accel/model.h"),
                      embedded_source("include/accel/images.h"), embedded_source("include/accel/losses.h"));
}

/* The header, with its parts, and gen/ops name the same functions. */
static void every_function_of_the_header_is_an_operation(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  static const char start[] = "\ntensor ";
  int declared = 0, defined = 0;
  const char *header = all_headers(arena);
  for (const char *at = header; (at = strstr(at, start)) != NULL; declared++) {
    at += sizeof start - 1;
    const char *name = arena_copy(arena, at, strcspn(at, "("));
    if (op_function_find(name) == NULL) fail_msg("accel/model.h has '%s', gen/ops has not", name);
  }
  for (int i = 0; i < op_file_count; i++) {
    const struct op_function *function = op_files[i]->functions;
    for (; function != NULL && function->name != NULL; function++, defined++)
      if (strstr(header, arena_printf(arena, "\ntensor %s(", function->name)) == NULL)
        fail_msg("gen/ops has '%s', accel/model.h has not", function->name);
  }
  assert_int_equal(declared, defined);
  arena_free(arena);
}

/* Whether a model can call it: a tensor function, one that the reader knows, or a macro of the headers. */
static bool is_function(struct arena *arena, const char *name) {
  static const char *const headers[] = {"include/accel/model.h", "include/accel/images.h", "include/accel/losses.h"};
  const char *macro = arena_printf(arena, "#define %s(", name);
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
    if (strstr(embedded_source(headers[i]), macro) != NULL) return true;
  return op_function_find(name) != NULL || native_find(name) != NULL;
}

/* Each word of a text that a parenthesis follows is a function of a model. Gives how many there are. */
static int count_functions(struct arena *arena, const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
  int count = 0;
  for (const char *at = text; *at != '\0';) {
    size_t length = strspn(at, letters);
    const char *name = arena_copy(arena, at, length);
    if (length > 0 && at[length] == '(') {
      if (!is_function(arena, name)) fail_msg("there is no function '%s' for: %s", name, text);
      count++;
    }
    at += length > 0 ? length : 1;
  }
  return count;
}

static void names_of_other_frameworks_lead_to_functions(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  for (int i = 0; i < foreign_count; i++) {
    const struct foreign *foreign = &foreign_functions[i];
    for (char *word = strtok(arena_string(arena, foreign->names), " "); word != NULL; word = strtok(NULL, " ")) {
      if (op_function_find(word) != NULL) fail_msg("'%s' is a function here, too", word);
      for (int j = 0; j < i; j++)
        if (strstr(foreign_functions[j].names, arena_printf(arena, " %s ", word)) != NULL) fail_msg("twice: %s", word);
    }
    if (foreign->ours != NULL && count_functions(arena, foreign->ours) == 0) fail_msg("no call: %s", foreign->ours);
    if (foreign->why != NULL) count_functions(arena, foreign->why);
    assert_true(foreign->ours == NULL || foreign->why == NULL);
  }
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_parse_serves_many_entries),
      cmocka_unit_test(names_of_other_frameworks_lead_to_functions),
      cmocka_unit_test(an_error_leaves_the_parse_usable),
      cmocka_unit_test(the_same_model_gives_the_same_graph),
      cmocka_unit_test(a_model_without_config_or_file),
      cmocka_unit_test(every_function_of_the_header_is_an_operation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
