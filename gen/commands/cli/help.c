/* accel-gen help: the commands, one command, or a key of the job. */
#include <stdio.h>
#include <string.h>

#include "gen/base/diag.h"
#include "gen/base/path.h"
#include "gen/base/text.h"
#include "gen/base/version.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/table.h"
#include "runtime/base/terminal.h"

enum { COLUMNS = 80, NAME = 2, SUMMARY = 26 };

/* One screen of 32 lines. */
static void add_overview(struct text *out) {
  text_puts(out, "accel-gen writes a training program in C for one job.\n");
  text_printf(out, "usage: accel-gen %-22s %s\n", command_table[0].forms[0].synopsis, command_table[0].summary);
  text_puts(out, "       accel-gen COMMAND [ARGUMENT]...\n\n");
  for (const struct command *command = command_table + 1; command->name != NULL; command++)
    text_printf(out, "  %-12s %s\n", command->name, command->summary);
  text_puts(out, "\n`accel-gen help COMMAND` lists the options of a command (JOB: of the first),\n"
                 "`accel-gen help job` the groups of a job; `accel-gen help KEY` explains a key.\n");
}

static void add_usage(struct text *out, const struct command *command) {
  for (int i = 0; command->forms[i].synopsis != NULL; i++)
    text_printf(out, "%s accel-gen %s\n", i == 0 ? "usage:" : "      ", command->forms[i].synopsis);
  text_puts(out, "\n");
  for (int i = 0; command->forms[i].synopsis != NULL && command->forms[1].synopsis != NULL; i++) {
    text_printf(out, "  %s\n      ", command->forms[i].synopsis);
    text_fold(out, command->forms[i].summary, 6, 6, COLUMNS);
    text_puts(out, "\n");
  }
  if (command->forms[1].synopsis == NULL) text_fold(out, command->forms[0].summary, 0, 0, COLUMNS);
  text_puts(out, "\n");
  if (command->about != NULL) text_fold(out, command->about, 0, 0, COLUMNS);
  text_puts(out, command->about != NULL ? "\n\n" : "");
}

/* "-o FILE, --output FILE" */
static const char *option_words(struct arena *arena, const struct option *option) {
  const char *blank = option->value != NULL ? " " : "", *value = option->value != NULL ? option->value : "";
  if (option->alias == NULL) return arena_printf(arena, "%s%s%s", option->name, blank, value);
  return arena_printf(arena, "%s, %s%s%s", option->name, option->alias, blank, value);
}

static void add_option(struct text *out, const struct option *option) {
  const char *words = option_words(out->arena, option);
  int end = NAME + (int)strlen(words);
  text_printf(out, "%*s%s", NAME, "", words);
  if (end + 2 > SUMMARY)
    text_printf(out, "\n%*s", SUMMARY, "");
  else
    text_printf(out, "%*s", SUMMARY - end, "");
  const char *choices = option->choices != NULL ? words_listed(out->arena, option->choices, " or ") : NULL;
  const char *before = choices != NULL ? arena_printf(out->arena, "%s: ", choices) : "";
  text_fold(out, arena_printf(out->arena, "%s%s", before, option->summary), SUMMARY, SUMMARY, COLUMNS);
  text_puts(out, "\n");
}

static void add_command(struct text *out, const struct command *command) {
  add_usage(out, command);
  text_puts(out, "options:\n");
  for (const struct option *option = option_table; option->name != NULL; option++)
    if (!option->hidden && command_takes(command, option)) add_option(out, option);
}

static int refuse(const struct options *options, const char *topic) {
  struct job_names names = job_help_topics(options->arena);
  const char *near = NULL, *dot = strrchr(topic, '.');
  for (int i = 0; dot != NULL && near == NULL && i < names.count; i++) /* a key of another group */
    if (has_ending(names.items[i], dot)) near = names.items[i];
  if (near == NULL) near = nearest_word(topic, names.items, names.count);
  const char *words[40];
  int count = 0;
  for (const struct command *command = command_table; command->name != NULL && count < 39; command++)
    words[count++] = command->name;
  if (near == NULL) near = nearest_word(topic, words, count);
  struct job_names others = near == NULL ? job_help_names(options->arena) : (struct job_names){0};
  if (near == NULL) near = nearest_word(topic, others.items, others.count);
  const char *instead = near != NULL ? arena_printf(options->arena, "did you mean '%s'?", near)
                                     : "`accel-gen help` lists the commands, `accel-gen help job` the groups of a job";
  rt_print(stderr, "accel-gen: no help on '%s'; %s\n", topic, instead);
  return STATUS_BAD_JOB;
}

/* A command, or what the job calls so: "job.model" is the group that the command `model` hides. */
static bool add_topic(struct text *out, const char *topic) {
  const struct command *command = strcmp(topic, "JOB") == 0 ? command_table : command_find(topic);
  if (command == NULL && strcmp(topic, "job") == 0) topic = "job.";
  const char *text = job_help(out->arena, strncmp(topic, "job.", 4) == 0 ? topic + 4 : topic);
  if (command != NULL) add_command(out, command);
  if (command != NULL && text != NULL)
    text_printf(out, "\nof the job's group of this name: `accel-gen help job.%s`\n", topic);
  if (command == NULL && text != NULL) text_puts(out, text);
  return command != NULL || text != NULL;
}

int command_help(const struct options *options) {
  struct text out = text_in(options->arena);
  const char *topic = options->asks_help ? options->chosen->name : options->argument;
  if (options->asks_help && options->chosen == command_find("help")) topic = NULL;
  if (options->as != NULL)
    text_puts(&out, manual_as(options->arena, options->as));
  else if (topic == NULL || topic[0] == '\0')
    add_overview(&out);
  else if (!add_topic(&out, topic))
    return refuse(options, topic);
  rt_print_text(stdout, text_string(&out));
  return STATUS_OK;
}

int command_version(const struct options *options) {
  bool known = options->commit[0] != '\0';
  rt_print(stdout, "accel-gen %s%s%s%s\n", ACCEL_VERSION, known ? " (commit " : "", options->commit, known ? ")" : "");
  return STATUS_OK;
}
