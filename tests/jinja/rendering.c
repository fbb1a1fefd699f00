#include "tests/jinja/rendering.h"

#include <string.h>

static const char *load(void *context, const char *name) {
  const struct texts *texts = context;
  for (int i = 0; i < 8 && texts->names[i] != NULL; i++) {
    if (strcmp(texts->names[i], name) == 0) return texts->items[i];
  }
  return NULL;
}

struct bench *start(const char *text) {
  struct arena *arena = arena_new();
  struct bench *bench = arena_alloc(arena, sizeof *bench);
  bench->arena = arena;
  bench->texts = (struct texts){.names = {"main"}, .items = {text}};
  bench->options = (struct jinja_options){.load = load, .load_context = &bench->texts, .undefined = JINJA_STRICT};
  bench->values = jinja_map(arena);
  return bench;
}

void add(struct bench *bench, const char *name, const char *text) {
  int i = 0;
  while (bench->texts.names[i] != NULL) i++;
  bench->texts.names[i] = name;
  bench->texts.items[i] = text;
}

bool render(struct bench *bench, bool spans) {
  if (bench->env == NULL) bench->env = jinja_env_new(bench->arena, &bench->options);
  return jinja_render(bench->env, "main", bench->values, spans, &bench->output, &bench->error);
}

const char *chain_text(struct arena *arena, const struct jinja_location *chain, int count) {
  const char *text = "";
  for (int i = 0; i < count; i++) {
    text = arena_printf(arena, "%s%s%s:%d:%d", text, i > 0 ? " < " : "", chain[i].template_name, chain[i].line,
                        chain[i].column);
  }
  return text;
}
