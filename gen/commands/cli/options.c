#include "gen/commands/cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/base/diag.h"
#include "gen/base/text.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/table.h"
#include "gen/commands/cli/values.h"
#include "runtime/base/terminal.h"

/* What is read so far. */
struct reader {
  struct options *options;
  char **next; /* the words that are left, ending with NULL */
};

bool options_refuse(const struct options *options, const char *message, const char *detail) {
  rt_print(stderr, "accel-gen: %s%s\n", message, detail);
  const struct form *forms = options->chosen != NULL ? options->chosen->forms : NULL;
  for (int i = 0; forms != NULL && forms[i].synopsis != NULL; i++)
    rt_print(stderr, "%s accel-gen %s\n", i == 0 ? "usage:" : "      ", forms[i].synopsis);
  if (forms == NULL || options->chosen == command_table)
    rt_print(stderr, "`accel-gen help` lists the commands\n");
  else
    rt_print(stderr, "`accel-gen help %s` lists the options\n", options->chosen->name);
  return false;
}

static bool wants_colour(const char *choice) {
  if (strcmp(choice, "auto") != 0) return strcmp(choice, "always") == 0;
  const char *no = getenv("NO_COLOR");
  return (no == NULL || no[0] == '\0') && isatty(STDERR_FILENO) == 1;
}

/* The text after "NAME=" when the word has that form; "" for exactly NAME; NULL otherwise. */
static const char *match(const char *word, const char *name) {
  if (name == NULL) return NULL;
  size_t length = strlen(name);
  if (strncmp(word, name, length) != 0) return NULL;
  if (word[length] == '\0') return "";
  return word[length] == '=' && name[1] == '-' ? word + length : NULL;
}

/* Takes an option's value: "=VALUE", or the next word. */
static bool apply(struct reader *reader, const struct option *option, const char *rest) {
  struct options *options = reader->options;
  char *member = (char *)options + option->member;
  if (option->value == NULL) {
    if (rest[0] == '=') return options_refuse(options, "no value belongs to ", option->name);
    *(bool *)member = true;
    return true;
  }
  const char *value = rest[0] == '=' ? rest + 1 : *reader->next;
  if (value == NULL || value[0] == '\0') return options_refuse(options, "a value is missing after ", option->name);
  if (rest[0] != '=') reader->next++;
  if (option->choices != NULL && !text_names(option->choices, value, false)) {
    const char *list = words_listed(options->arena, option->choices, " or ");
    return options_refuse(options, arena_printf(options->arena, "%s is %s, not ", option->name, list), value);
  }
  if (option->read != NULL) return option->read(options, value);
  *(const char **)member = value;
  return true;
}

static bool refuse_unknown(const struct options *options, const char *word) {
  const char *names[100], *name = arena_copy(options->arena, word, strcspn(word, "="));
  int count = 0;
  for (const struct option *option = option_table; option->name != NULL && count < 98; option++) {
    if (!command_takes(options->chosen, option)) continue;
    names[count++] = option->name;
    if (option->alias != NULL) names[count++] = option->alias;
  }
  const char *near = strlen(name) > 3 ? nearest_word(name, names, count) : NULL;
  if (near != NULL) word = arena_printf(options->arena, "%s; did you mean %s?", word, near);
  return options_refuse(options, "unknown option ", word);
}

static bool read_argument(struct options *options, const char *word) {
  bool late = options->n_arguments > 0 && command_find(options->argument) != NULL && options->chosen == command_table;
  if (late) return options_refuse(options, "the command comes first, before every option: ", options->argument);
  if (options->n_arguments == options->chosen->most) return options_refuse(options, "one argument too many: ", word);
  options->arguments[options->n_arguments++] = word;
  if (options->n_arguments == 1) options->argument = word;
  if (options->n_arguments == 2) options->second = word;
  return true;
}

static bool read_option(struct reader *reader, const char *word) {
  const char *of_others = NULL;
  for (const struct option *option = option_table; option->name != NULL; option++) {
    const char *rest = match(word, option->name);
    if (rest == NULL) rest = match(word, option->alias);
    if (rest == NULL) continue;
    if (command_takes(reader->options->chosen, option)) return apply(reader, option, rest);
    of_others = option->name;
  }
  if (of_others != NULL) return options_refuse(reader->options, "this command does not take ", of_others);
  if (reader->options->chosen->takes_dashes) return read_argument(reader->options, word);
  return refuse_unknown(reader->options, word);
}

/* A word that can be nothing but a command's: it names no file, and looks like none. */
static bool refuse_command(const struct options *options, const char *word) {
  const char *names[40];
  int count = 0;
  for (const struct command *command = command_table + 1; command->name != NULL && count < 40; command++)
    names[count++] = command->name;
  const char *near = nearest_word(word, names, count);
  const char *detail = near != NULL ? arena_printf(options->arena, "'%s'; did you mean '%s'?", word, near)
                                    : arena_printf(options->arena, "'%s', and no file has this name", word);
  return options_refuse(options, "unknown command ", detail);
}

/* Finds the command: of the first word, when it is one; else the main form. */
static bool read_command(struct reader *reader) {
  const char *first = *reader->next;
  struct stat status;
  if (first == NULL || strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
    reader->options->chosen = command_find("help");
    reader->next += first != NULL;
    return true;
  }
  if (strcmp(first, "--version") == 0) first = "version";
  reader->options->chosen = command_find(first);
  if (reader->options->chosen != NULL) {
    reader->next++;
    return true;
  }
  if (first[0] != '-' && strpbrk(first, "./") == NULL && stat(first, &status) != 0)
    return refuse_command(reader->options, first);
  reader->options->chosen = command_table;
  return true;
}

static bool has_all(const struct options *options) {
  const struct command *chosen = options->chosen;
  bool ended = chosen->is_last != NULL && options->n_arguments == 1 && chosen->is_last(options->argument);
  return ended || options->n_arguments == chosen->most;
}

static bool read_words(struct reader *reader) {
  struct options *options = reader->options;
  bool options_ended = false;
  while (*reader->next != NULL) {
    if (options->chosen->has_rest && has_all(options)) break;
    const char *word = *reader->next++;
    if (!options_ended && strcmp(word, "--") == 0) {
      options_ended = true;
    } else if (!options_ended && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
      options->asks_help = true;
      return true;
    } else if (!options_ended && word[0] == '-' && word[1] != '\0') {
      if (!read_option(reader, word)) return false;
    } else if (!read_argument(options, word)) {
      return false;
    }
  }
  options->rest = reader->next;
  return true;
}

/* Whether nothing is missing, and the options can be combined. */
static bool is_whole(const struct options *options) {
  const struct command *command = options->chosen;
  if (command->only_words && options->argument != NULL && !text_names(command->words, options->argument, false))
    return options_refuse(options,
                          arena_printf(options->arena, "the word after %s is %s, not ", command->name,
                                       words_listed(options->arena, command->words, " or ")),
                          options->argument);
  for (int i = 0; i < 2; i++)
    if (command->needed[i] != NULL && options->n_arguments <= i && !has_all(options) && !options->grammar)
      return options_refuse(options, command->needed[i], " is missing");
  if (command->needs_output && options->output == NULL && options->dump == NULL && options->bundle == NULL &&
      !options->serves)
    return options_refuse(options, "an output is missing: -o FILE", "");
  if (options->serves && options->output != NULL)
    return options_refuse(options, "--serve writes no file: give it without -o", "");
  if (options->port >= 0 && !options->serves) return options_refuse(options, "--port is of --serve", "");
  if (options->bundle != NULL && options->output != NULL)
    return options_refuse(options, "--bundle replaces -o: give one of them", "");
  if (options->html != NULL && (options->json || options->dump != NULL || options->output != NULL))
    return options_refuse(options, "--html writes a page instead of what is printed: give it without ",
                          options->json           ? "--json"
                          : options->dump != NULL ? "--dump"
                                                  : "-o");
  if (options->templates != NULL && !is_folder(options->templates))
    return options_refuse(options, "--templates names a folder, which is not ", options->templates);
  bool in_file = options->output != NULL && strcmp(options->output, "-") != 0;
  if ((options->manifest || options->provenance) && !in_file)
    return options_refuse(
        options, "the files of --manifest and --provenance are next to the program: -o FILE must name a file", "");
  return true;
}

const struct command *options_read(struct options *options, int argc, char **argv) {
  struct reader reader = {.options = options, .next = argv + (argc > 0)};
  options->program = "train";
  options->format = NULL;
  options->port = -1;
  options->march = "native";
  options->network = (struct network){.latency = 20e-6, .bandwidth = 1250e6}; /* Ethernet of 10 Gbit/s */
  options->fail_on = "unproved";
  options->undefined = "strict";
  options->color = "auto";
  options->device = "cpu";
  options->rounds = 3;
  options->arguments = arena_alloc(options->arena, ((size_t)argc + 1) * sizeof *options->arguments);
  bool good = read_command(&reader) && read_words(&reader) && (options->asks_help || value_tuning(options));
  options->colour = wants_colour(options->color);
  if (!good) return NULL;
  if (options->asks_help) return command_find("help");
  return is_whole(options) ? options->chosen : NULL;
}

bool options_set(const struct options *options, const char *key) {
  const size_t length = strlen(key);
  for (int i = 0; i < options->n_overrides; i++) {
    const char *set = options->overrides[i].key;
    if (strncmp(set, key, length) == 0 && (set[length] == '\0' || set[length] == '.')) return true;
  }
  return false;
}
