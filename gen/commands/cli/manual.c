/* The table of commands and options for other readers: man, bash, and the documents. */
#include <ctype.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/commands/cli/table.h"
#include "gen/spec/job.h"

/* A sentence of it, with its choices before it. */
static const char *sentence(struct arena *arena, const struct option *option) {
  const char *choices = option->choices != NULL ? words_listed(arena, option->choices, " or ") : NULL;
  return choices != NULL ? arena_printf(arena, "%s: %s", choices, option->summary) : option->summary;
}

/* ---- man ---- */

static void add_roff(struct text *out, const char *words) {
  for (const char *at = words; *at != '\0'; at++) {
    if (*at == '-' || *at == '\\')
      text_puts(out, *at == '-' ? "\\-" : "\\e");
    else if (*at == '\'')
      text_puts(out, "\\(aq");
    else
      text_add(out, at, 1);
  }
}

/* With a capital. */
static const char *sentence_of(struct arena *arena, const char *summary) {
  return arena_printf(arena, "%c%s", toupper((unsigned char)summary[0]), summary + 1);
}

static void add_man_command(struct text *out, const struct command *command) {
  for (int i = 0; command->forms[i].synopsis != NULL; i++) {
    text_puts(out, ".TP\n.B accel\\-gen ");
    add_roff(out, command->forms[i].synopsis);
    text_puts(out, "\n");
    add_roff(out, sentence_of(out->arena, command->forms[i].summary));
    text_puts(out, ".\n");
  }
  if (command->about != NULL) add_roff(out, command->about);
  text_puts(out, command->about != NULL ? "\n" : "");
}

static void add_man_option(struct text *out, const struct option *option) {
  text_puts(out, ".TP\n.B ");
  add_roff(out, option->name);
  if (option->alias != NULL) text_puts(out, "\\fR, \\fB");
  if (option->alias != NULL) add_roff(out, option->alias);
  if (option->value != NULL) text_puts(out, " \\fI");
  if (option->value != NULL) add_roff(out, option->value);
  text_puts(out, "\\fR\nOf ");
  bool all = strcmp(option->commands, " * ") == 0;
  add_roff(out, all ? "all" : words_listed(out->arena, option->commands, ", "));
  text_puts(out, ": ");
  add_roff(out, sentence(out->arena, option));
  text_puts(out, ".\n");
}

static void add_man(struct text *out) {
  text_puts(out, ".SH COMMANDS\n");
  for (const struct command *command = command_table; command->name != NULL; command++) add_man_command(out, command);
  text_puts(out, ".SH OPTIONS\n");
  for (const struct option *option = option_table; option->name != NULL; option++)
    if (!option->hidden) add_man_option(out, option);
}

/* ---- docs/commands.md ---- */

/* A cell: what stands for a value may hold a bar. */
static void add_cell(struct text *out, const char *words) {
  for (const char *at = words; *at != '\0'; at++) {
    if (*at == '|' || *at == '<') text_puts(out, "\\");
    text_add(out, at, 1);
  }
}

static void add_page(struct text *out, const char *page) {
  if (page == NULL) return;
  text_printf(out, " ([%.*s](%s))", (int)strcspn(page, "#"), page, page);
}

static void add_markdown(struct text *out) {
  enum { SYNOPSIS = 58 };
  text_puts(out, "```\n");
  for (const struct command *command = command_table; command->name != NULL; command++)
    for (const struct form *form = command->forms; form->synopsis != NULL; form++)
      text_printf(out, "accel-gen %-*s %s\n", SYNOPSIS, form->synopsis, form->summary);
  text_puts(out, "```\n\n| command | |\n|---|---|\n");
  for (const struct command *command = command_table; command->name != NULL; command++) {
    if (command->about == NULL && command->page == NULL) continue;
    text_printf(out, "| %s | ", command->name);
    if (command->about != NULL) add_cell(out, command->about);
    add_page(out, command->page);
    text_puts(out, " |\n");
  }
  text_puts(out, "\n| option | of | |\n|---|---|---|\n");
  for (const struct option *option = option_table; option->name != NULL; option++) {
    if (option->hidden) continue;
    const char *blank = option->value != NULL ? " " : "", *value = option->value != NULL ? option->value : "";
    bool all = strcmp(option->commands, " * ") == 0;
    text_printf(out, "| `%s%s%s`", option->name, blank, value);
    if (option->alias != NULL) text_printf(out, ", `%s%s%s`", option->alias, blank, value);
    text_printf(out, " | %s | ", all ? "all" : words_listed(out->arena, option->commands, ", "));
    add_cell(out, sentence(out->arena, option));
    add_page(out, option->page);
    text_puts(out, " |\n");
  }
}

/* ---- bash ---- */

/* "build:-o | build:--output" of all commands that take it, as a pattern. */
static void add_pattern(struct text *out, const struct option *option) {
  size_t begin = out->length;
  const char *names[] = {option->name, option->alias};
  bool all = strcmp(option->commands, " * ") == 0;
  for (int i = 0; i < 2 && names[i] != NULL; i++)
    for (const struct command *command = command_table; command->name != NULL; command++) {
      if (!command_takes(command, option) || (all && command != command_table)) continue;
      text_printf(out, "%s%s:%s", out->length > begin ? " | " : "", all ? "*" : command->name, names[i]);
    }
}

/* What compgen is asked for an option's value; NULL: nothing can be said of it. */
static const char *reply_of(struct arena *arena, const struct option *option) {
  if (option->choices != NULL) return arena_printf(arena, "-W '%s'", option->choices);
  if (option->completes == COMPLETES_FOLDER) return "-d";
  if (option->completes == COMPLETES_FILE) return "-f";
  if (option->completes == COMPLETES_KEY) return "-W \"$keys\"";
  return option->completes == COMPLETES_SETTING ? "-S = -W \"$keys\"" : NULL;
}

static void add_bash_value(struct text *out, const struct option *option) {
  const char *reply = reply_of(out->arena, option);
  text_puts(out, "  ");
  add_pattern(out, option);
  text_puts(out, ")\n");
  if (option->completes == COMPLETES_SETTING) text_puts(out, "    compopt -o nospace 2>/dev/null\n");
  if (reply != NULL) text_printf(out, "    COMPREPLY=($(compgen %s -- \"$word\"))\n", reply);
  text_puts(out, "    return\n    ;;\n");
}

static void add_keys(struct text *out) {
  struct job_names names = job_help_topics(out->arena);
  text_puts(out, "  local keys='");
  for (int i = 0; i < names.count; i++)
    if (strchr(names.items[i], '.') != NULL) text_printf(out, "%s ", names.items[i]);
  text_puts(out, "'\n  local topics='JOB job ");
  for (const struct command *command = command_table + 1; command->name != NULL; command++)
    text_printf(out, "%s ", command->name);
  for (int i = 0; i < names.count; i++)
    if (strchr(names.items[i], '.') == NULL) text_printf(out, "%s ", names.items[i]);
  text_puts(out, "'\n");
}

static void add_bash_command(struct text *out, const struct command *command) {
  text_printf(out, "  %s) options='", command == command_table ? "*" : command->name);
  for (const struct option *option = option_table; option->name != NULL; option++) {
    if (option->hidden || !command_takes(command, option)) continue;
    text_printf(out, "%s ", option->name);
    if (option->alias != NULL) text_printf(out, "%s ", option->alias);
  }
  text_puts(out, "'");
  if (command->words != NULL) text_printf(out, " words='%s'", command->words);
  if (strcmp(command->name, "help") == 0) text_puts(out, " words=$topics");
  text_puts(out, " ;;\n");
}

static void add_bash(struct text *out) {
  text_puts(out,
            "# Completion of accel-gen for bash.\n"
            "# shellcheck disable=SC2207\n"
            "_accel_gen() {\n"
            "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}\n"
            "  local options='' words='' commands='");
  for (const struct command *command = command_table + 1; command->name != NULL; command++)
    text_printf(out, "%s ", command->name);
  text_puts(out, "'\n");
  add_keys(out);
  text_puts(out, "  COMPREPLY=()\n"
                 "  case \" $commands\" in *\" $command \"*) ;; *) command=JOB ;; esac\n"
                 "  case $command:$before in\n");
  for (const struct option *option = option_table; option->name != NULL; option++)
    if (option->value != NULL && !option->hidden) add_bash_value(out, option);
  text_puts(out, "  esac\n  case $command in\n");
  for (const struct command *command = command_table + 1; command->name != NULL; command++)
    add_bash_command(out, command);
  add_bash_command(out, command_table);
  text_puts(out,
            "  esac\n"
            "  case $word in\n"
            "  -*) COMPREPLY=($(compgen -W \"$options --version\" -- \"$word\")) && return ;;\n"
            "  esac\n"
            "  COMPREPLY=($(compgen -f -- \"$word\"))\n"
            "  if [ \"$COMP_CWORD\" = 1 ]; then words=$commands; elif [ \"$COMP_CWORD\" != 2 ]; then words=''; fi\n"
            "  COMPREPLY+=($(compgen -W \"$words\" -- \"$word\"))\n"
            "}\n"
            "complete -o filenames -F _accel_gen accel-gen\n");
}

const char *manual_as(struct arena *arena, const char *form) {
  struct text out = text_in(arena);
  if (strcmp(form, "man") == 0) add_man(&out);
  if (strcmp(form, "bash") == 0) add_bash(&out);
  if (strcmp(form, "markdown") == 0) add_markdown(&out);
  return text_string(&out);
}
