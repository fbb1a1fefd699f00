/* accel-gen render TEMPLATE [VALUES]
 *
 * Renders a Jinja template with values from a JSON or YAML file. Templates that it includes, imports or extends are
 * looked for next to it. Exit status: 0 fine, 1 the template or the values have an error, 2 wrong usage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/render/template_values.h"

struct rendering {
  struct arena *arena;
  const char *template_path, *values_path, *folder;
  bool source_map;
  struct jinja_options options;
};

static const char *read_file(struct arena *arena, const char *path, size_t *length) {
  return strcmp(path, "-") == 0 ? read_stream(arena, stdin, length) : read_bytes(arena, path, length);
}

/* Templates are in the main template's folder; a name cannot lead out of it. */
static const char *load(void *context, const char *name) {
  const struct rendering *command = context;
  bool leaves = name[0] == '/' || strcmp(name, "..") == 0 || strncmp(name, "../", 3) == 0 ||
                strstr(name, "/../") != NULL || has_ending(name, "/..");
  if (leaves) return NULL;
  size_t length;
  return read_file(command->arena, arena_printf(command->arena, "%s%s", command->folder, name), &length);
}

/* --- values --- */

static bool read_values(struct rendering *command, struct jinja_value *values) {
  *values = jinja_map(command->arena);
  if (command->values_path == NULL) return true;
  size_t length;
  const char *bytes = read_file(command->arena, command->values_path, &length);
  if (bytes == NULL) {
    fprintf(stderr, "accel-gen render: %s: %s\n", command->values_path, strerror(errno));
    return false;
  }
  bool json = has_ending(command->values_path, ".json");
  bool fine = json ? values_read_json(command->arena, command->values_path, bytes, length, values)
                   : values_read_yaml(command->arena, command->values_path, bytes, length, values);
  if (!fine || values->kind == JINJA_MAP) return fine;
  fprintf(stderr, "%s:1:1: error: the values must be a mapping of names\n", command->values_path);
  return false;
}

/* --- output --- */

static void print_error(const struct jinja_error *error) {
  const struct jinja_location *location = &error->chain[0];
  fprintf(stderr, "%s:%d:%d: error: %s\n", location->template_name, location->line, location->column, error->message);
  if (error->source_line != NULL) fprintf(stderr, "  %s\n  %*s^\n", error->source_line, location->column - 1, "");
  for (int i = 1; i < error->chain_count; i++) {
    fprintf(stderr, "%s:%d:%d: note: from here\n", error->chain[i].template_name, error->chain[i].line,
            error->chain[i].column);
  }
}

/* One span a line: the output's line:column+length, then the chain of locations, innermost first. */
static void print_map(const struct jinja_output *output) {
  for (int i = 0; i < output->span_count; i++) {
    const struct jinja_span *span = &output->spans[i];
    printf("%d:%d+%d", span->line, span->column, span->length);
    for (int j = 0; j < span->chain_count; j++) {
      printf("\t%s:%d:%d", span->chain[j].template_name, span->chain[j].line, span->chain[j].column);
    }
    putchar('\n');
  }
}

static int run(struct rendering *command) {
  struct jinja_value values;
  struct jinja_output output;
  struct jinja_error error;
  if (!read_values(command, &values)) return 1;
  const char *slash = strrchr(command->template_path, '/');
  command->folder =
      slash != NULL ? arena_copy(command->arena, command->template_path, (size_t)(slash + 1 - command->template_path))
                    : "";
  command->options.load = load;
  command->options.load_context = command;
  struct jinja_env *env = jinja_env_new(command->arena, &command->options);
  const char *name = slash != NULL ? slash + 1 : command->template_path;
  if (!jinja_render(env, name, values, command->source_map, &output, &error)) {
    print_error(&error);
    return 1;
  }
  if (command->source_map) {
    print_map(&output);
  } else {
    fwrite(output.text, 1, output.length, stdout);
  }
  if (fflush(stdout) == 0) return 0;
  fprintf(stderr, "accel-gen render: the output could not be written: %s\n", strerror(errno));
  return 1;
}

static enum jinja_undefined undefined_kind(const char *word) {
  static const char *const words[] = {"lenient", "chainable", "debug"};
  for (int i = 0; i < 3; i++)
    if (strcmp(word, words[i]) == 0) return (enum jinja_undefined)i;
  return JINJA_STRICT; /* the table of options has no other words */
}

int command_render(const struct options *options) {
  struct rendering command = {.arena = options->arena,
                              .template_path = options->argument,
                              .values_path = options->second,
                              .source_map = options->source_map,
                              .options = {.undefined = undefined_kind(options->undefined),
                                          .trim_blocks = options->trim_blocks,
                                          .lstrip_blocks = options->lstrip_blocks,
                                          .keep_trailing_newline = options->keep_newline,
                                          .autoescape = options->autoescape}};
  return run(&command);
}
