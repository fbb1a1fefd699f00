/* libFuzzer target: templates that are rendered with some values, small limits and a source map. The first byte picks
 * the options; a line "---" ends a template: the first is "main", the others are "a", "b", "c". */
#include <stdlib.h>
#include <string.h>

#include "gen/jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct texts {
  const char *items[4];
};

static const char *load(void *context, const char *name) {
  static const char *const names[] = {"main", "a", "b", "c"};
  const struct texts *texts = context;
  for (int i = 0; i < 4; i++) {
    if (strcmp(names[i], name) == 0) return texts->items[i];
  }
  return NULL;
}

static struct texts split(struct arena *arena, const uint8_t *data, size_t size) {
  struct texts texts = {{arena_copy(arena, data, size)}};
  char *at = (char *)(uintptr_t)texts.items[0];
  for (int i = 1; i < 4 && (at = strstr(at, "\n---\n")) != NULL; i++) {
    *at = '\0';
    at += 5;
    texts.items[i] = at;
  }
  return texts;
}

static struct jinja_value values(struct arena *arena) {
  struct jinja_value map = jinja_map(arena), list = jinja_list(arena), user = jinja_map(arena);
  jinja_push(arena, list, jinja_int(3));
  jinja_push(arena, list, jinja_string(arena, "b\xc3\xa9"));
  jinja_push(arena, list, jinja_double(-2.5));
  jinja_push(arena, list, jinja_none());
  jinja_set(arena, user, "name", jinja_string(arena, "<ann>"));
  jinja_set(arena, user, "l", list);
  jinja_set(arena, map, "n", jinja_int(7));
  jinja_set(arena, map, "s", jinja_string(arena, "hello world"));
  jinja_set(arena, map, "t", jinja_bool(true));
  jinja_set(arena, map, "l", list);
  jinja_set(arena, map, "u", user);
  return map;
}

/* The source map covers the output: every byte once, in order. */
static void check_spans(const struct jinja_output *output) {
  size_t covered = 0;
  for (int i = 0; i < output->span_count; i++) {
    if (output->spans[i].length < 1 || output->spans[i].chain_count < 1 || output->spans[i].line < 1) abort();
    covered += (size_t)output->spans[i].length;
  }
  if (covered != output->length) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  struct arena *arena = arena_new();
  struct texts texts = split(arena, data + 1, size - 1);
  struct jinja_options options = {
      .load = load, .load_context = &texts, .max_recursion = 40, .max_output = 1 << 16, .max_steps = 20000};
  options.undefined = (enum jinja_undefined)(data[0] & 3);
  options.trim_blocks = data[0] & 4;
  options.lstrip_blocks = data[0] & 8;
  options.autoescape = data[0] & 16;
  if (data[0] & 32) options.line_statement_prefix = "#", options.line_comment_prefix = "##";
  options.chat = data[0] & 64;
  struct jinja_env *env = jinja_env_new(arena, &options);
  struct jinja_output output = {0};
  struct jinja_error error = {0};
  struct jinja_value context = values(arena);
  for (int round = 0; round < 2; round++) { /* the second reuses the first one's memory */
    if (jinja_render(env, "main", context, true, &output, &error)) {
      check_spans(&output);
    } else if (error.message == NULL || error.chain_count < 1) {
      abort();
    }
  }
  arena_free(arena);
  return 0;
}
