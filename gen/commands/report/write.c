#include "gen/commands/report/write.h"

#include <stdio.h>

#include "gen/base/embedded.h"
#include "gen/base/text.h"
#include "gen/base/version.h"
#include "gen/commands/cli/files.h"
#include "gen/report/data.h"
#include "runtime/base/terminal.h"

struct jinja_value page_text(struct arena *arena, const char *text) {
  return jinja_string(arena, data_clean(arena, text));
}

struct jinja_value page_json(struct arena *arena, const char *json) {
  struct text out = text_in(arena);
  for (; *json != '\0'; json++)
    if (*json == '<')
      text_puts(&out, "\\u003c");
    else
      text_add(&out, json, 1);
  return jinja_string(arena, text_string(&out));
}

static const char *load(void *context, const char *name) {
  return embedded_source(arena_printf(context, "share/report/%s", name));
}

bool page_render(struct arena *arena, const char *name, struct jinja_value page, const char *state,
                 struct jinja_output *output) {
  struct jinja_options how = {.undefined = JINJA_STRICT,
                              .trim_blocks = true,
                              .lstrip_blocks = true,
                              .keep_trailing_newline = true,
                              .autoescape = true,
                              .load = load,
                              .load_context = arena};
  struct jinja_error error;
  jinja_set(arena, page, "version", jinja_string(arena, ACCEL_VERSION));
  jinja_set(arena, page, "style", jinja_string(arena, embedded_source("share/report/page.css")));
  jinja_set(arena, page, "state", state != NULL ? jinja_string(arena, state) : jinja_none());
  if (state != NULL) jinja_set(arena, page, "reload", jinja_string(arena, embedded_source("share/report/reload.js")));
  if (jinja_render(jinja_env_new(arena, &how), name, page, false, output, &error)) return true;
  rt_print(stderr, "accel-gen: %s:%d: %s\n", error.chain[0].template_name, error.chain[0].line, error.message);
  return false;
}

int page_write(const struct options *options, const char *name, struct jinja_value page, const struct inputs *inputs,
               const char *path) {
  struct jinja_output output;
  if (!page_render(options->arena, name, page, NULL, &output)) return STATUS_CANNOT;
  return write_file(inputs, path, output.text, output.length) ? STATUS_OK : STATUS_CANNOT;
}
