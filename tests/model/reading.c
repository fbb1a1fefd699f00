#include "tests/model/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/file.h"

static void read_value(struct config_value *value, const char *text) {
  char *end;
  value->string = text;
  value->integer = strtoll(text, &end, 10);
  value->real = (double)value->integer;
  value->kind = CONFIG_INT;
  if (*end == '\0') return;
  value->kind = CONFIG_REAL;
  value->real = strtod(text, &end);
  if (*end == '\0') return;
  bool truth = strcmp(text, "true") == 0;
  value->kind = truth || strcmp(text, "false") == 0 ? CONFIG_BOOL : CONFIG_STRING;
  value->integer = truth;
}

void options_add_config(struct arena *arena, struct model_options *options, const char *line) {
  char *words = arena_string(arena, line);
  for (char *word = strtok(words, " "); word != NULL && options->n_config < MOST_CONFIG; word = strtok(NULL, " ")) {
    char *equals = strchr(word, '=');
    if (equals == NULL) continue;
    *equals = '\0';
    int at = 2 + options->n_config;
    struct config_value *value = &options->config[options->n_config++];
    *value = (struct config_value){.name = word};
    value->name_where = (struct location){"job.yaml", at, 3, (int)strlen(word)};
    value->where = (struct location){"job.yaml", at, 5 + (int)strlen(word), (int)strlen(equals + 1)};
    read_value(value, equals + 1);
  }
}

/* The rest of the line that begins with `mark`; NULL when there is none. */
static const char *comment(struct arena *arena, const char *text, const char *mark) {
  const char *found = strstr(text, mark);
  if (found == NULL || (found != text && found[-1] != '\n')) return NULL;
  found += strlen(mark);
  return arena_copy(arena, found, strcspn(found, "\n"));
}

struct model_options options_of_comments(struct arena *arena, const char *text) {
  struct model_options options = {.entry = comment(arena, text, "// entry: ")};
  if (options.entry == NULL) options.entry = "model";
  const char *job = comment(arena, text, "// job: ");
  if (job != NULL) options_add_config(arena, &options, job);
  return options;
}

struct graph *read_graph(struct arena *arena, const struct tree *program, const struct model_options *options,
                         struct diagnostics *diags) {
  const struct model_input inputs[] = {{"tokens", shape_of(2, 12, 64), DTYPE_INT32},
                                       {"targets", shape_of(2, 12, 64), DTYPE_INT32},
                                       {"features", shape_of(2, 12, 30), DTYPE_FLOAT32},
                                       {"labels", shape_of(1, 12), DTYPE_INT32}};
  struct model_request request = {.entry = options->entry,
                                  .loss = strcmp(options->entry, "model") == 0,
                                  .config = options->config,
                                  .n_config = options->n_config,
                                  .config_where = {"job.yaml", 1, 1, 0},
                                  .inputs = inputs,
                                  .n_inputs = 4};
  return model_graph(arena, program, &request, diags);
}

const char *read_file(struct arena *arena, const char *path) {
  size_t length;
  return read_bytes(arena, path, &length);
}

const char *printed(struct arena *arena, const struct diagnostics *diags) {
  FILE *file = tmpfile();
  if (file == NULL) return "no temporary file";
  diag_print(diags, file, false);
  fseek(file, 0, SEEK_SET);
  size_t length;
  const char *text = read_stream(arena, file, &length);
  fclose(file);
  return text;
}
