#include "gen/commands/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/base/path.h"
#include "gen/commands/files.h"
#include "gen/plan/program.h"

/* What is read so far. */
struct reader {
  struct options *options;
  const struct command *command;
  char **next; /* the arguments that are left, ending with NULL */
  const char *colour;
  int overrides_capacity, includes_capacity;
};

/* An option: where its value goes. Exactly one of value, flag and read is set. */
struct option {
  const char *name, *alias;
  const char **value;
  bool *flag;
  bool (*read)(struct reader *reader, const char *value);
};

static bool usage_error(const struct reader *reader, const char *message, const char *detail) {
  fprintf(stderr, "accel-gen: %s%s\n", message, detail);
  if (reader->command != NULL) fprintf(stderr, "usage: accel-gen %s\n", reader->command->synopsis);
  fprintf(stderr, "`accel-gen help` lists the commands\n");
  return false;
}

/* Whether `name` stands as a word of its own in a list of words between spaces. */
static bool names_word(const char *words, const char *name) {
  size_t length = strlen(name);
  for (const char *at = words; length > 0 && (at = strstr(at, name)) != NULL; at += length)
    if (at[-1] == ' ' && at[length] == ' ') return true;
  return false;
}

static bool add_override(struct reader *reader, struct job_override override) {
  struct options *options = reader->options;
  options->overrides = arena_grow(options->arena, options->overrides, options->n_overrides, &reader->overrides_capacity,
                                  sizeof override);
  options->overrides[options->n_overrides++] = override;
  return true;
}

static bool read_override(struct reader *reader, const char *value) {
  const char *equals = strchr(value, '=');
  if (equals == NULL || equals == value) return usage_error(reader, "--set needs KEY=VALUE, not ", value);
  const char *key = arena_copy(reader->options->arena, value, (size_t)(equals - value));
  return add_override(reader, (struct job_override){.key = key, .value = equals + 1});
}

/* ---- The network that a plan is predicted for ---- */

static bool read_nodes(struct reader *reader, const char *value) {
  reader->options->predicts = true;
  return add_override(reader, (struct job_override){.key = "devices.nodes", .value = value});
}

/* A positive number, in units of `unit`. */
static bool read_quantity(struct reader *reader, const char *value, double unit, double *quantity) {
  char *end;
  double number = strtod(value, &end);
  if (end == value || *end != '\0' || !(number > 0 && number < 1e12))
    return usage_error(reader, "a number greater than 0 must stand in the place of ", value);
  *quantity = number * unit;
  reader->options->predicts = true;
  return true;
}

static bool read_latency(struct reader *reader, const char *value) {
  return read_quantity(reader, value, 1e-6, &reader->options->network.latency);
}

static bool read_bandwidth(struct reader *reader, const char *value) {
  return read_quantity(reader, value, 1e6, &reader->options->network.bandwidth);
}

static bool read_step(struct reader *reader, const char *value) {
  return read_quantity(reader, value, 1e-3, &reader->options->network.step);
}

static bool read_rounds(struct reader *reader, const char *value) {
  char *end;
  long rounds = strtol(value, &end, 10);
  if (end == value || *end != '\0' || rounds < 1 || rounds > 1000)
    return usage_error(reader, "--rounds is a number from 1 to 1000, not ", value);
  reader->options->rounds = (int)rounds;
  return true;
}

/* --tuning FILE is devices.tuning, which names a file from the job's folder. */
static bool add_tuning(struct reader *reader) {
  struct options *options = reader->options;
  const char *file = options->tuning;
  if (file == NULL || options->argument == NULL) return true;
  if (strchr(file, '\'') != NULL) return usage_error(reader, "a table's name may hold no quote: ", file);
  if (strcmp(file, "machine") != 0)
    file = name_from(options->arena, folder_of(options->arena, options->argument), file);
  return add_override(
      reader, (struct job_override){.key = "devices.tuning", .value = arena_printf(options->arena, "'%s'", file)});
}

static bool read_program(struct reader *reader, const char *value) {
  enum program_kind kind;
  if (!program_kind_find(value, &kind))
    return usage_error(reader, "--program is train, evaluate or generate, not ", value);
  reader->options->program = value;
  return true;
}

static bool read_format(struct reader *reader, const char *value) {
  static const char known[] = " text json sarif junit html ";
  if (!names_word(known, value))
    return usage_error(reader, "--format is text, json, sarif, junit or html, not ", value);
  reader->options->format = value;
  return true;
}

static bool read_fail_on(struct reader *reader, const char *value) {
  if (strcmp(value, "broken") != 0 && strcmp(value, "unproved") != 0 && strcmp(value, "never") != 0)
    return usage_error(reader, "--fail-on is broken, unproved or never, not ", value);
  reader->options->fail_on = value;
  return true;
}

static bool read_include(struct reader *reader, const char *value) {
  struct options *options = reader->options;
  options->includes = arena_grow(options->arena, options->includes, options->n_includes, &reader->includes_capacity,
                                 sizeof *options->includes);
  options->includes[options->n_includes++] = value;
  return true;
}

static bool read_colour(struct reader *reader, const char *value) {
  if (strcmp(value, "auto") != 0 && strcmp(value, "always") != 0 && strcmp(value, "never") != 0)
    return usage_error(reader, "--color is auto, always or never, not ", value);
  reader->colour = value;
  return true;
}

static bool wants_colour(const char *choice) {
  if (strcmp(choice, "auto") != 0) return strcmp(choice, "always") == 0;
  const char *no = getenv("NO_COLOR");
  return (no == NULL || no[0] == '\0') && isatty(STDERR_FILENO) == 1;
}

/* The text behind "NAME=" when the argument has that form; "" for exactly NAME; NULL otherwise. */
static const char *match(const char *argument, const char *name) {
  if (name == NULL) return NULL;
  size_t length = strlen(name);
  if (strncmp(argument, name, length) != 0) return NULL;
  if (argument[length] == '\0') return "";
  return argument[length] == '=' && name[1] == '-' ? argument + length : NULL;
}

/* Applies one option to `argument`, of the form NAME, NAME VALUE or NAME=VALUE. */
static bool apply(struct reader *reader, const struct option *option, const char *rest) {
  if (!names_word(reader->command->accepts, option->name))
    return usage_error(reader, "this command does not take ", option->name);
  if (option->flag != NULL) {
    if (rest[0] == '=') return usage_error(reader, "no value belongs to ", option->name);
    *option->flag = true;
    return true;
  }
  const char *value = rest[0] == '=' ? rest + 1 : *reader->next;
  if (value == NULL || value[0] == '\0') return usage_error(reader, "a value is missing behind ", option->name);
  if (rest[0] != '=') reader->next++;
  if (option->read != NULL) return option->read(reader, value);
  *option->value = value;
  return true;
}

static bool read_option(struct reader *reader, const char *argument) {
  struct options *options = reader->options;
  const struct option known[] = {
      {.name = "-o", .alias = "--output", .value = &options->output},
      {.name = "--set", .read = read_override},
      {.name = "--bundle", .value = &options->bundle},
      {.name = "--config", .value = &options->config},
      {.name = "--program", .read = read_program},
      {.name = "--templates", .value = &options->templates},
      {.name = "--nodes", .read = read_nodes},
      {.name = "--latency", .read = read_latency},
      {.name = "--bandwidth", .read = read_bandwidth},
      {.name = "--step", .read = read_step},
      {.name = "--tuning", .value = &options->tuning},
      {.name = "--measured", .value = &options->measured},
      {.name = "--rounds", .read = read_rounds},
      {.name = "--dump", .value = &options->dump},
      {.name = "--format", .read = read_format},
      {.name = "--fail-on", .read = read_fail_on},
      {.name = "--object", .value = &options->object},
      {.name = "--root", .value = &options->root},
      {.name = "--march", .value = &options->march},
      {.name = "-I", .alias = "--include", .read = read_include},
      {.name = "--regenerate", .flag = &options->regenerate},
      {.name = "--provenance", .flag = &options->provenance},
      {.name = "--key", .value = &options->key},
      {.name = "--manifest", .flag = &options->manifest},
      {.name = "--resolved", .flag = &options->resolved},
      {.name = "--json", .flag = &options->json},
      {.name = "-v", .alias = "--verbose", .flag = &options->verbose},
      {.name = "--color", .read = read_colour},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    const char *rest = match(argument, known[i].name);
    if (rest == NULL) rest = match(argument, known[i].alias);
    if (rest != NULL) return apply(reader, &known[i], rest);
  }
  return usage_error(reader, "unknown option ", argument);
}

const struct command *command_find(const struct options *options, const char *name) {
  for (const struct command *command = options->commands; command->name != NULL; command++)
    if (strcmp(command->name, name) == 0) return command;
  return NULL;
}

/* The command word, when the first argument is one; else the main form. */
static const struct command *read_command(struct reader *reader) {
  const char *first = *reader->next;
  if (first == NULL) return command_find(reader->options, "help");
  if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) first = "help";
  if (strcmp(first, "--version") == 0) first = "version";
  const struct command *command = command_find(reader->options, first);
  if (command != NULL && command->name[0] != '\0') {
    reader->next++;
    return command;
  }
  return command_find(reader->options, "");
}

static bool read_argument(struct reader *reader, const char *argument) {
  if (reader->options->argument != NULL && reader->command->second != NULL && reader->options->second == NULL) {
    reader->options->second = argument;
    return true;
  }
  if (reader->options->argument != NULL) return usage_error(reader, "one argument too many: ", argument);
  reader->options->argument = argument;
  return true;
}

static bool read_rest(struct reader *reader) {
  bool options_ended = false;
  while (*reader->next != NULL) {
    const char *argument = *reader->next++;
    if (!options_ended && strcmp(argument, "--") == 0) {
      options_ended = true;
    } else if (!options_ended && argument[0] == '-' && argument[1] != '\0') {
      if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
        reader->options->argument = reader->command->name[0] != '\0' ? reader->command->name : NULL;
        reader->command = command_find(reader->options, "help");
        return true;
      }
      if (!read_option(reader, argument)) return false;
    } else if (!read_argument(reader, argument)) {
      return false;
    }
  }
  return true;
}

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

const struct command *options_read(struct options *options, int argc, char **argv) {
  struct reader reader = {.options = options, .next = argv + (argc > 0), .colour = "auto"};
  options->program = "train";
  options->format = "text";
  options->march = "native";
  options->network = (struct network){.latency = 20e-6, .bandwidth = 1250e6}; /* Ethernet of 10 Gbit/s */
  options->fail_on = "unproved";
  reader.command = read_command(&reader);
  options->rounds = 3;
  bool good = read_rest(&reader) && add_tuning(&reader);
  options->colour = wants_colour(reader.colour);
  if (!good) return NULL;
  if (reader.command->argument != NULL && options->argument == NULL) {
    usage_error(&reader, reader.command->argument, " is missing");
    return NULL;
  }
  if (reader.command->second != NULL && options->second == NULL) {
    usage_error(&reader, reader.command->second, " is missing");
    return NULL;
  }
  if (reader.command->needs_output && options->output == NULL && options->dump == NULL && options->bundle == NULL) {
    usage_error(&reader, "an output is missing: -o FILE", "");
    return NULL;
  }
  if (options->bundle != NULL && options->output != NULL) {
    usage_error(&reader, "--bundle stands in the place of -o: one of them", "");
    return NULL;
  }
  if (options->templates != NULL && !is_folder(options->templates)) {
    usage_error(&reader, "--templates names a folder, which is not ", options->templates);
    return NULL;
  }
  bool in_file = options->output != NULL && strcmp(options->output, "-") != 0;
  if ((options->manifest || options->provenance) && !in_file) {
    usage_error(&reader, "what is said of a program lies beside it: -o FILE must name a file", "");
    return NULL;
  }
  return reader.command;
}
