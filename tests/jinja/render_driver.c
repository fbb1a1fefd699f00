/* Renders requests, for tests in other languages: one JSON request a line on stdin, one JSON answer a line on
 * stdout.
 *
 * Request:  {"templates": {"main": "…"}, "main": "main", "values": {…}, "options": {…}, "spans": true}
 * Answer:   {"text": "…", "spans": [[line, column, length, [["template", line, column], …]], …]}
 *       or  {"error": "…", "chain": [["template", line, column], …], "source": "…"} */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/commands/render/template_values.h"

static const char *load(void *context, const char *name) {
  return json_string_value(json_object_get(context, name));
}

static enum jinja_undefined undefined_kind(const char *name) {
  if (name == NULL || strcmp(name, "lenient") == 0) return JINJA_LENIENT;
  if (strcmp(name, "chainable") == 0) return JINJA_CHAINABLE;
  return strcmp(name, "debug") == 0 ? JINJA_DEBUG : JINJA_STRICT;
}

static struct jinja_options to_options(const json_t *request) {
  const json_t *json = json_object_get(request, "options");
  struct jinja_options options = {.load = load, .load_context = json_object_get(request, "templates")};
  options.undefined = undefined_kind(json_string_value(json_object_get(json, "undefined")));
  options.trim_blocks = json_is_true(json_object_get(json, "trim_blocks"));
  options.lstrip_blocks = json_is_true(json_object_get(json, "lstrip_blocks"));
  options.keep_trailing_newline = json_is_true(json_object_get(json, "keep_trailing_newline"));
  options.autoescape = json_is_true(json_object_get(json, "autoescape"));
  options.line_statement_prefix = json_string_value(json_object_get(json, "line_statement_prefix"));
  options.line_comment_prefix = json_string_value(json_object_get(json, "line_comment_prefix"));
  options.max_recursion = (int)json_integer_value(json_object_get(json, "max_recursion"));
  options.max_output = json_integer_value(json_object_get(json, "max_output"));
  options.max_steps = json_integer_value(json_object_get(json, "max_steps"));
  return options;
}

static json_t *chain_json(const struct jinja_location *chain, int count) {
  json_t *list = json_array();
  for (int i = 0; i < count; i++)
    json_array_append_new(list, json_pack("[sii]", chain[i].template_name, chain[i].line, chain[i].column));
  return list;
}

static json_t *answer_json(bool fine, const struct jinja_output *output, const struct jinja_error *error) {
  json_t *answer = json_object();
  if (!fine) {
    json_object_set_new(answer, "error",
                        json_string(error->message) != NULL ? json_string(error->message) : json_string("(not UTF-8)"));
    json_object_set_new(answer, "chain", chain_json(error->chain, error->chain_count));
    if (error->source_line != NULL) json_object_set_new(answer, "source", json_string(error->source_line));
    return answer;
  }
  json_t *text = json_stringn(output->text, output->length);
  json_object_set_new(answer, "text", text != NULL ? text : json_string("(not UTF-8)"));
  if (output->spans == NULL) return answer;
  json_t *spans = json_array();
  for (int i = 0; i < output->span_count; i++) {
    const struct jinja_span *span = &output->spans[i];
    json_array_append_new(
        spans, json_pack("[iiio]", span->line, span->column, span->length, chain_json(span->chain, span->chain_count)));
  }
  json_object_set_new(answer, "spans", spans);
  return answer;
}

static void serve(const json_t *request) {
  struct arena *arena = arena_new();
  struct jinja_options options = to_options(request);
  struct jinja_env *env = jinja_env_new(arena, &options);
  struct jinja_value values = values_of_json(arena, json_object_get(request, "values"));
  const char *name = json_string_value(json_object_get(request, "main"));
  struct jinja_output output = {0};
  struct jinja_error error = {0};
  bool fine = jinja_render(env, name != NULL ? name : "main", values, json_is_true(json_object_get(request, "spans")),
                           &output, &error);
  json_t *answer = answer_json(fine, &output, &error);
  json_dumpf(answer, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
  putchar('\n');
  fflush(stdout);
  json_decref(answer);
  arena_free(arena);
}

int main(void) {
  char *line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, stdin) > 0) {
    json_error_t why;
    json_t *request = json_loads(line, JSON_ALLOW_NUL, &why);
    if (request == NULL || !json_is_object(json_object_get(request, "values"))) {
      fprintf(stderr, "render_driver: not a request: %s\n", request == NULL ? why.text : "no values");
      return 2;
    }
    serve(request);
    json_decref(request);
  }
  free(line);
  return 0;
}
