/* libFuzzer target: any text as a model. The first line may be a comment that gives a config, as in the tests. */
#include <string.h>

#include "tests/model/reading.c" /* a target is one file */

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  if (memchr(data, '\0', size) != NULL) return 0;
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const char *text = arena_copy(arena, data, size);
  if (strstr(text, "#include \"/") == NULL && strstr(text, "#include </") == NULL) {
    struct asked asked = ask_comments(arena, text);
    const struct program *program = model_parse_text(arena, "fuzz.c", text, &diags);
    if (program != NULL) read_graph(arena, program, &asked, &diags);
  }
  arena_free(arena);
  return 0;
}
