/* accel-gen render TEMPLATE [VALUES] [--source-map] [--undefined KIND] [--trim-blocks] [--lstrip-blocks]
 *
 * Renders a Jinja template with values from a JSON or YAML file. Templates that it includes, imports or extends are
 * looked for beside it. Exit status: 0 fine, 1 the template or the values have an error, 2 wrong usage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/commands/template_values.h"

int command_render(int argc, char **argv);

struct command {
  struct arena *arena;
  const char *template_path, *values_path, *folder;
  bool source_map;
  struct jinja_options options;
};

static const char *read_file(struct arena *arena, const char *path, size_t *length) {
  return strcmp(path, "-") == 0 ? read_stream(arena, stdin, length) : read_bytes(arena, path, length);
}

/* Templates lie in the main template's folder; a name cannot lead out of it. */
static const char *load(void *context, const char *name) {
  const struct command *command = context;
  bool leaves = name[0] == '/' || strcmp(name, "..") == 0 || strncmp(name, "../", 3) == 0 ||
                strstr(name, "/../") != NULL || has_ending(name, "/..");
  if (leaves) return NULL;
  size_t length;
  return read_file(command->arena, arena_printf(command->arena, "%s%s", command->folder, name), &length);
}

/* --- values --- */

static bool read_values(struct command *command, struct jinja_value *values) {
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
  const struct jinja_place *place = &error->chain[0];
  fprintf(stderr, "%s:%d:%d: error: %s\n", place->template_name, place->line, place->column, error->message);
  if (error->source_line != NULL) fprintf(stderr, "  %s\n  %*s^\n", error->source_line, place->column - 1, "");
  for (int i = 1; i < error->chain_count; i++) {
    fprintf(stderr, "%s:%d:%d: note: from here\n", error->chain[i].template_name, error->chain[i].line,
            error->chain[i].column);
  }
}

/* One span a line: the output's line:column+length, then the chain of places, innermost first. */
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

static int run(struct command *command) {
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

/* --- arguments --- */

static const char usage[] =
    "usage: accel-gen render TEMPLATE [VALUES.json|VALUES.yaml]\n"
    "  --source-map        print which template line wrote which part of the output, instead of the output\n"
    "  --undefined KIND    strict (the default), lenient, chainable or debug\n"
    "  --trim-blocks       drop the newline behind a block tag\n"
    "  --lstrip-blocks     drop the blanks before a block tag that begins its line\n"
    "  --keep-newline      keep the newline that ends the template\n"
    "  --autoescape        escape values for HTML\n";

static bool undefined_kind(const char *word, enum jinja_undefined *kind) {
  static const char *const words[] = {"lenient", "chainable", "debug", "strict"};
  for (int i = 0; word != NULL && i < 4; i++) {
    if (strcmp(word, words[i]) == 0) return *kind = (enum jinja_undefined)i, true;
  }
  return false;
}

static bool parse_arguments(struct command *command, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *word = argv[i];
    if (strcmp(word, "--source-map") == 0)
      command->source_map = true;
    else if (strcmp(word, "--trim-blocks") == 0)
      command->options.trim_blocks = true;
    else if (strcmp(word, "--lstrip-blocks") == 0)
      command->options.lstrip_blocks = true;
    else if (strcmp(word, "--keep-newline") == 0)
      command->options.keep_trailing_newline = true;
    else if (strcmp(word, "--autoescape") == 0)
      command->options.autoescape = true;
    else if (strcmp(word, "--undefined") == 0) {
      if (!undefined_kind(i + 1 < argc ? argv[++i] : NULL, &command->options.undefined)) return false;
    } else if (word[0] == '-' && word[1] != '\0')
      return false;
    else if (command->template_path == NULL)
      command->template_path = word;
    else if (command->values_path == NULL)
      command->values_path = word;
    else
      return false;
  }
  return command->template_path != NULL;
}

/* argv[0] is the command's own name. */
int command_render(int argc, char **argv) {
  struct command command = {.options.undefined = JINJA_STRICT};
  bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
  if (help || !parse_arguments(&command, argc, argv)) {
    fputs(usage, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  command.arena = arena_new();
  int status = run(&command);
  arena_free(command.arena);
  return status;
}
