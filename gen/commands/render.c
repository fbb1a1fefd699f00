/* accel-gen render TEMPLATE [VALUES] [--source-map] [--undefined KIND] [--trim-blocks] [--lstrip-blocks]
 *
 * Renders a Jinja template with values from a JSON or YAML file. Templates that it includes, imports or extends are
 * looked for beside it. Exit status: 0 fine, 1 the template or the values have an error, 2 wrong usage. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <yaml.h>

#include "gen/base/text.h"
#include "gen/jinja/jinja.h"

int command_render(int argc, char **argv);

enum { MAX_VALUE_DEPTH = 200 };

struct command {
  struct arena *arena;
  const char *template_path, *values_path, *folder;
  bool source_map;
  struct jinja_options options;
};

static const char *read_file(struct arena *arena, const char *path, size_t *length) {
  FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (file == NULL) return NULL;
  struct text text = text_in(arena);
  char piece[1 << 14];
  size_t count;
  while ((count = fread(piece, 1, sizeof piece, file)) > 0) text_add(&text, piece, count);
  bool failed = ferror(file) != 0;
  if (file != stdin) fclose(file);
  if (length != NULL) *length = text.length;
  return failed ? NULL : text_string(&text);
}

/* Templates lie in the main template's folder; a name cannot lead out of it. */
static const char *load(void *context, const char *name) {
  const struct command *command = context;
  bool leaves =
      name[0] == '/' || strcmp(name, "..") == 0 || strncmp(name, "../", 3) == 0 || strstr(name, "/../") != NULL;
  size_t length = strlen(name);
  if (leaves || (length >= 3 && strcmp(name + length - 3, "/..") == 0)) return NULL;
  return read_file(command->arena, arena_printf(command->arena, "%s%s", command->folder, name), NULL);
}

/* --- JSON --- */

static struct jinja_value from_json(struct arena *arena, json_t *json) {
  struct jinja_value value;
  const char *key;
  json_t *item;
  size_t i;
  switch (json_typeof(json)) {
  case JSON_OBJECT:
    value = jinja_map(arena);
    json_object_foreach(json, key, item) jinja_set(arena, value, key, from_json(arena, item));
    return value;
  case JSON_ARRAY:
    value = jinja_list(arena);
    json_array_foreach(json, i, item) jinja_push(arena, value, from_json(arena, item));
    return value;
  case JSON_STRING:
    return jinja_string_n(arena, json_string_value(json), json_string_length(json));
  case JSON_INTEGER:
    return jinja_int(json_integer_value(json));
  case JSON_REAL:
    return jinja_double(json_real_value(json));
  case JSON_NULL:
    return jinja_none();
  default:
    return jinja_bool(json_is_true(json));
  }
}

static bool read_json(struct command *command, const char *bytes, size_t length, struct jinja_value *values) {
  json_error_t why;
  json_t *json = json_loadb(bytes, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
  if (json == NULL) {
    fprintf(stderr, "%s:%d:%d: error: %s\n", command->values_path, why.line, why.column, why.text);
    return false;
  }
  *values = from_json(command->arena, json);
  json_decref(json);
  return true;
}

/* --- YAML, with the scalars of its core schema --- */

static bool one_of(const char *text, const char *const *words) {
  for (; *words != NULL; words++) {
    if (strcmp(text, *words) == 0) return true;
  }
  return false;
}

static bool plain_integer(const char *text, int64_t *value) {
  int base = strncmp(text, "0x", 2) == 0 ? 16 : strncmp(text, "0o", 2) == 0 ? 8 : 10;
  const char *digits = base == 10 ? text + (text[0] == '-' || text[0] == '+') : text + 2;
  const char *allowed = base == 16 ? "0123456789abcdefABCDEF" : base == 8 ? "01234567" : "0123456789";
  if (digits[0] == '\0' || strspn(digits, allowed) != strlen(digits)) return false;
  errno = 0;
  *value = strtoimax(base == 10 ? text : digits, NULL, base);
  return errno == 0;
}

static bool plain_real(const char *text, double *value) {
  static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL}, *const nans[] = {".nan", ".NaN", ".NAN",
                                                                                           NULL};
  bool sign = text[0] == '-' || text[0] == '+';
  if (one_of(text + sign, infinities)) return *value = text[0] == '-' ? -INFINITY : INFINITY, true;
  if (one_of(text, nans)) return *value = NAN, true;
  if (strspn(text, "0123456789.eE+-") != strlen(text) || strpbrk(text, "0123456789") == NULL) return false;
  char *end;
  *value = strtod(text, &end);
  return *end == '\0';
}

static struct jinja_value plain_scalar(struct arena *arena, const char *text) {
  static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
  static const char *const trues[] = {"true", "True", "TRUE", NULL}, *const falses[] = {"false", "False", "FALSE",
                                                                                        NULL};
  int64_t integer;
  double real;
  if (one_of(text, nulls)) return jinja_none();
  if (one_of(text, trues)) return jinja_bool(true);
  if (one_of(text, falses)) return jinja_bool(false);
  if (plain_integer(text, &integer)) return jinja_int(integer);
  return plain_real(text, &real) ? jinja_double(real) : jinja_string(arena, text);
}

struct yaml {
  struct command *command;
  yaml_document_t document;
  const char *problem;
  yaml_mark_t mark;
  int nodes; /* an alias can stand for much: an upper bound keeps a small file from becoming a huge value */
};

static struct jinja_value from_yaml(struct yaml *yaml, int index, int depth);

static struct jinja_value yaml_map(struct yaml *yaml, const yaml_node_t *node, int depth) {
  struct jinja_value map = jinja_map(yaml->command->arena);
  for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
    const yaml_node_t *key = yaml_document_get_node(&yaml->document, pair->key);
    if (key->type != YAML_SCALAR_NODE) {
      yaml->problem = "a key must be a scalar";
      yaml->mark = key->start_mark;
      return map;
    }
    jinja_set(yaml->command->arena, map, (const char *)key->data.scalar.value, from_yaml(yaml, pair->value, depth + 1));
  }
  return map;
}

static struct jinja_value from_yaml(struct yaml *yaml, int index, int depth) {
  struct arena *arena = yaml->command->arena;
  const yaml_node_t *node = yaml_document_get_node(&yaml->document, index);
  if (depth > MAX_VALUE_DEPTH || ++yaml->nodes > 10000000) {
    yaml->problem = "the values are too deep or too many";
    yaml->mark = node->start_mark;
    return jinja_none();
  }
  if (node->type == YAML_MAPPING_NODE) return yaml_map(yaml, node, depth);
  if (node->type == YAML_SEQUENCE_NODE) {
    struct jinja_value list = jinja_list(arena);
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top && yaml->problem == NULL; item++) {
      jinja_push(arena, list, from_yaml(yaml, *item, depth + 1));
    }
    return list;
  }
  if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
    return plain_scalar(arena, (const char *)node->data.scalar.value);
  return jinja_string_n(arena, (const char *)node->data.scalar.value, node->data.scalar.length);
}

static bool read_yaml(struct command *command, const char *bytes, size_t length, struct jinja_value *values) {
  struct yaml yaml = {.command = command};
  yaml_parser_t parser;
  if (!yaml_parser_initialize(&parser)) return false;
  yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, length);
  bool fine = yaml_parser_load(&parser, &yaml.document);
  if (!fine) {
    fprintf(stderr, "%s:%zu:%zu: error: %s\n", command->values_path, parser.problem_mark.line + 1,
            parser.problem_mark.column + 1, parser.problem != NULL ? parser.problem : "not YAML");
  } else {
    if (yaml_document_get_root_node(&yaml.document) != NULL) *values = from_yaml(&yaml, 1, 0);
    yaml_document_delete(&yaml.document);
  }
  if (yaml.problem != NULL) {
    fprintf(stderr, "%s:%zu:%zu: error: %s\n", command->values_path, yaml.mark.line + 1, yaml.mark.column + 1,
            yaml.problem);
    fine = false;
  }
  yaml_parser_delete(&parser);
  return fine;
}

static bool read_values(struct command *command, struct jinja_value *values) {
  *values = jinja_map(command->arena);
  if (command->values_path == NULL) return true;
  size_t length;
  const char *bytes = read_file(command->arena, command->values_path, &length),
             *dot = strrchr(command->values_path, '.');
  if (bytes == NULL) {
    fprintf(stderr, "accel-gen render: %s: %s\n", command->values_path, strerror(errno));
    return false;
  }
  bool json = dot != NULL && strcmp(dot, ".json") == 0;
  if (!(json ? read_json(command, bytes, length, values) : read_yaml(command, bytes, length, values))) return false;
  if (values->kind == JINJA_MAP) return true;
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
