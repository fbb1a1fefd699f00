/* Times gen/jinja for tests/bench/jinja.py. Reads one JSON object {"templates": {…}, "values": {…}} as a line, then
 * commands "parse N", "render N" or "env N", one a line; answers each with one repetition's milliseconds of the
 * processor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gen/commands/render/template_values.h"

static const char *load(void *context, const char *name) {
  return json_string_value(json_object_get(context, name));
}

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void check(bool fine, const struct jinja_error *error) {
  if (fine) return;
  fprintf(stderr, "jinja_bench: %s\n", error->message);
  exit(1);
}

/* All templates compiled in a fresh environment; making the environment is not counted. */
static double parse(const struct jinja_options *options, json_t *templates, int count) {
  double total = 0;
  struct jinja_error error = {0};
  for (int i = 0; i < count; i++) {
    struct arena *arena = arena_new();
    struct jinja_env *env = jinja_env_new(arena, options);
    const char *name;
    json_t *text;
    double start = milliseconds();
    json_object_foreach(templates, name, text) check(jinja_compile(env, name, &error), &error);
    total += milliseconds() - start;
    arena_free(arena);
  }
  return total / count;
}

static double render(const struct jinja_options *options, json_t *request, int count, bool show) {
  struct arena *arena = arena_new();
  struct jinja_env *env = jinja_env_new(arena, options);
  struct jinja_value values = values_of_json(arena, json_object_get(request, "values"));
  struct jinja_output output = {0};
  struct jinja_error error = {0};
  check(jinja_render(env, "main", values, false, &output, &error), &error);
  if (show) fwrite(output.text, 1, output.length, stderr);
  double start = milliseconds();
  for (int i = 0; i < count; i++) check(jinja_render(env, "main", values, false, &output, &error), &error);
  double total = milliseconds() - start;
  arena_free(arena);
  return total / count;
}

int main(void) {
  char *line = NULL, command[16];
  size_t capacity = 0;
  int count;
  if (getline(&line, &capacity, stdin) <= 0) return 2;
  json_t *request = json_loads(line, 0, NULL);
  if (request == NULL) return 2;
  json_t *templates = json_object_get(request, "templates");
  struct jinja_options options = {.load = load, .load_context = templates};
  while (getline(&line, &capacity, stdin) > 0 && sscanf(line, "%15s %d", command, &count) == 2) {
    double result = strcmp(command, "parse") == 0 ? parse(&options, templates, count)
                                                  : render(&options, request, count, strcmp(command, "show") == 0);
    printf("%.9f\n", result);
    fflush(stdout);
  }
  json_decref(request);
  free(line);
  return 0;
}
