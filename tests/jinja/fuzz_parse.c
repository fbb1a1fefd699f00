/* libFuzzer target: any bytes as a template's text. The first byte picks the options. */
#include <stdlib.h>
#include <string.h>

#include "gen/jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *load(void *context, const char *name) {
  return strcmp(name, "main") == 0 ? context : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  struct arena *arena = arena_new();
  struct jinja_options options = {.load = load, .load_context = arena_copy(arena, data + 1, size - 1)};
  options.trim_blocks = data[0] & 1;
  options.lstrip_blocks = data[0] & 2;
  options.keep_trailing_newline = data[0] & 4;
  if (data[0] & 8) options.line_statement_prefix = "#";
  if (data[0] & 16) options.line_comment_prefix = "##";
  options.chat = data[0] & 32;
  struct jinja_env *env = jinja_env_new(arena, &options);
  struct jinja_error error = {0};
  if (!jinja_compile(env, "main", &error) &&
      (error.message == NULL || error.chain_count < 1 || error.chain[0].line < 1))
    abort();
  arena_free(arena);
  return 0;
}
