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

void ask_config(struct arena *arena, struct asked *asked, const char *line) {
  char *words = arena_string(arena, line);
  for (char *word = strtok(words, " "); word != NULL && asked->n_config < MOST_CONFIG; word = strtok(NULL, " ")) {
    char *equals = strchr(word, '=');
    if (equals == NULL) continue;
    *equals = '\0';
    int at = 2 + asked->n_config;
    struct config_value *value = &asked->config[asked->n_config++];
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

struct asked ask_comments(struct arena *arena, const char *text) {
  struct asked asked = {.entry = comment(arena, text, "// entry: ")};
  if (asked.entry == NULL) asked.entry = "model";
  const char *job = comment(arena, text, "// job: ");
  if (job != NULL) ask_config(arena, &asked, job);
  return asked;
}

struct graph *read_graph(struct arena *arena, const struct tree *program, const struct asked *asked,
                         struct diagnostics *diags) {
  const struct model_input inputs[] = {{"tokens", shape_of(2, 12, 64), DTYPE_INT32},
                                       {"targets", shape_of(2, 12, 64), DTYPE_INT32},
                                       {"features", shape_of(2, 12, 30), DTYPE_FLOAT32},
                                       {"labels", shape_of(1, 12), DTYPE_INT32}};
  struct model_request request = {.entry = asked->entry,
                                  .loss = strcmp(asked->entry, "model") == 0,
                                  .config = asked->config,
                                  .n_config = asked->n_config,
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
