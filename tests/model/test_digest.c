/* The digest of a model: what computes makes another one, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "gen/base/file.h"
#include "gen/model/model.h"
#include "tests/model/reading.h"

#define BEGIN                                                                                                          \
  "#include <accel/model.h>\n"                                                                                         \
  "#define HALF 0.5\n"                                                                                                 \
  "#define ROWS {\"a\", \"width\"}\n"                                                                                  \
  "#define DEFAULTS_OF(width_) {.width = (width_)}\n"                                                                  \
  "struct config { int width; };\n"                                                                                    \
  "const struct config defaults = DEFAULTS_OF(3);\n"                                                                   \
  "static const double factors[] = {1, 2};\n"                                                                          \
  "const struct published published[] = {ROWS};\n"
#define END                                                                                                            \
  "tensor model(scope s, struct config c, tensor features, tensor labels) {\n"                                         \
  "  tensor x = linear(s, features, c.width);\n"                                                                       \
  "#if 1\n"                                                                                                            \
  "  x = scale(x, HALF);\n"                                                                                            \
  "#endif\n"                                                                                                           \
  "  return cross_entropy(scale(x, factors[1]), labels);\n"                                                            \
  "}\n"

static const char *digest_of(struct arena *arena, const char *file, const char *text) {
  struct diagnostics diags = diagnostics_in(arena);
  const struct tree *tree = model_parse_text(arena, file, text, &diags);
  if (diags.errors > 0) diag_print(&diags, stderr, false);
  assert_non_null(tree);
  return model_digest(tree);
}

/* The text with a part of it written otherwise. */
static const char *with(struct arena *arena, const char *part, const char *other) {
  const char *at = strstr(BEGIN END, part);
  assert_non_null(at);
  const int before = (int)(strlen(BEGIN END) - strlen(at));
  return arena_printf(arena, "%.*s%s%s", before, BEGIN END, other, at + strlen(part));
}

static void what_does_not_compute_makes_no_other(void **state) {
  (void)state;
  static const char *const pairs[][2] = {
      {"#define HALF 0.5\n", "/* A half. */\n#define HALF \\\n  0.5\n"},
      {"[] = {1, 2};", "[] =\n    {1, /* and */ 2};"},
      {"{ROWS}", "{ROWS, {\"b\", .is = \"1\"}}"},
      {"\"a\", \"width\"", "\"b\", \"width\""},
      {"const struct published published[] = {ROWS};\n", ""},
      {"tensor model(", "const char *const architectures[] = {\"X\"};\n#define UNUSED HALF\ntensor model("},
      {"tensor model(",
       "#include \"gguf.h\"\nconst struct gguf_tensor gguf_tensors[] = {GGUF_LLAMA_ENDS};\ntensor model("},
  };
  struct arena *arena = arena_new();
  const char *file = "examples/models/small.c", *digest = digest_of(arena, file, BEGIN END);
  assert_int_equal(strlen(digest), 16);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const char *other = with(arena, pairs[i][0], pairs[i][1]);
    assert_string_equal(digest_of(arena, file, other), digest);
  }
  arena_free(arena);
}

static void what_computes_makes_another(void **state) {
  (void)state;
  static const char *const pairs[][2] = {{"#define HALF 0.5\n", "#define HALF 0.25\n"},
                                         {"[] = {1, 2};", "[] = {1, 3};"},
                                         {"DEFAULTS_OF(3)", "DEFAULTS_OF(4)"},
                                         {"{.width = (width_)}", "{.width = 2 * (width_)}"},
                                         {"scale(x, HALF)", "scale(x, 2 * HALF)"},
                                         {"int width;", "int width, more;"},
                                         {"#if 1", "#if 0"},
                                         {"c.width", "c.width + 1"},
                                         {"struct config {", "#include \"rope.h\"\nstruct config {"}};
  struct arena *arena = arena_new();
  const char *file = "examples/models/small.c";
  const char *digests[sizeof pairs / sizeof *pairs + 1] = {digest_of(arena, file, BEGIN END)};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    digests[i + 1] = digest_of(arena, file, with(arena, pairs[i][0], pairs[i][1]));
    for (size_t k = 0; k <= i; k++) assert_string_not_equal(digests[i + 1], digests[k]);
  }
  arena_free(arena);
}

/* A family's tables are at the end of its file, after their header. */
static void tables_of_families_do_not_count(void **state) {
  (void)state;
  static const char *const families[] = {"llama", "gemma2", "deepseek_v3", "mamba"};
  struct arena *arena = arena_new();
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    const char *file = arena_printf(arena, "examples/models/%s.c", families[i]);
    size_t length;
    const char *text = read_bytes(arena, file, &length), *tables = strstr(text, "#include \"gguf.h\"");
    if (tables == NULL) tables = strstr(text, "/* What llama.cpp calls it");
    assert_non_null(tables);
    const char *without = arena_copy(arena, text, (size_t)(tables - text));
    assert_string_equal(digest_of(arena, file, text), digest_of(arena, file, without));
  }
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_does_not_compute_makes_no_other),
      cmocka_unit_test(what_computes_makes_another),
      cmocka_unit_test(tables_of_families_do_not_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
