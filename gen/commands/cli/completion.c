/* The table of commands and options for the shells: what bash, zsh and fish offer while a command line is typed. */
#include <string.h>

#include "gen/base/text.h"
#include "gen/commands/cli/table.h"
#include "gen/spec/job.h"

/* ---- What all of them offer ---- */

static void add_command_words(struct text *out) {
  for (const struct command *command = command_table + 1; command->name != NULL; command++)
    text_printf(out, "%s ", command->name);
}

/* Keys of a job with their groups: what --set takes. */
static void add_key_words(struct text *out) {
  struct job_names names = job_help_topics(out->arena);
  for (int i = 0; i < names.count; i++)
    if (strchr(names.items[i], '.') != NULL) text_printf(out, "%s ", names.items[i]);
}

/* What `accel-gen help` explains besides them. */
static void add_topic_words(struct text *out) {
  struct job_names names = job_help_topics(out->arena);
  text_puts(out, "JOB job ");
  add_command_words(out);
  for (int i = 0; i < names.count; i++)
    if (strchr(names.items[i], '.') == NULL) text_printf(out, "%s ", names.items[i]);
}

static bool is_offered(const struct command *command, const struct option *option) {
  return !option->hidden && command_takes(command, option);
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

/* The arguments of compgen that complete an option's value; NULL: nothing can be said of it. */
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
  text_puts(out, "  local keys='");
  add_key_words(out);
  text_puts(out, "'\n  local topics='");
  add_topic_words(out);
  text_puts(out, "'\n");
}

static void add_bash_command(struct text *out, const struct command *command) {
  text_printf(out, "  %s) options='", command == command_table ? "*" : command->name);
  for (const struct option *option = option_table; option->name != NULL; option++) {
    if (!is_offered(command, option)) continue;
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
  add_command_words(out);
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

/* ---- zsh ---- */

/* A summary within single quotes, of which zsh ends a name with a colon. */
static void add_quoted(struct text *out, const char *summary) {
  for (const char *at = summary; *at != '\0'; at++)
    if (*at == '\'')
      text_puts(out, "'\\''");
    else
      text_add(out, at, 1);
}

static void add_zsh_value(struct text *out, const struct option *option) {
  text_puts(out, "  (");
  add_pattern(out, option);
  text_puts(out, ")\n");
  if (option->choices != NULL)
    text_printf(out, "    compadd --%.*s\n", (int)strlen(option->choices) - 1, option->choices);
  if (option->completes == COMPLETES_FOLDER) text_puts(out, "    _files -/\n");
  if (option->completes == COMPLETES_FILE) text_puts(out, "    _files\n");
  if (option->completes == COMPLETES_KEY) text_puts(out, "    compadd -- $keys\n");
  if (option->completes == COMPLETES_SETTING) text_puts(out, "    compadd -S = -- $keys\n");
  text_puts(out, "    return\n    ;;\n");
}

static void add_zsh_command(struct text *out, const struct command *command) {
  text_printf(out, "  (%s)\n    options=(\n", command == command_table ? "*" : command->name);
  for (const struct option *option = option_table; option->name != NULL; option++) {
    const char *names[] = {option->name, option->alias};
    for (int i = 0; i < 2 && names[i] != NULL && is_offered(command, option); i++) {
      text_printf(out, "      '%s:", names[i]);
      add_quoted(out, option->summary);
      text_puts(out, "'\n");
    }
  }
  text_puts(out, "    )\n");
  if (command->words != NULL) text_printf(out, "    words_of=(%s)\n", command->words);
  if (strcmp(command->name, "help") == 0) text_puts(out, "    words_of=($topics)\n");
  text_puts(out, "    ;;\n");
}

static void add_zsh(struct text *out) {
  text_puts(out, "#compdef accel-gen\n# Completion of accel-gen for zsh.\n"
                 "local command=$words[2] before=$words[CURRENT-1]\n"
                 "local -a options words_of commands keys topics\ncommands=(\n");
  for (const struct command *command = command_table + 1; command->name != NULL; command++) {
    text_printf(out, "  '%s:", command->name);
    add_quoted(out, command->summary);
    text_puts(out, "'\n");
  }
  text_puts(out, ")\nkeys=(");
  add_key_words(out);
  text_puts(out, ")\ntopics=(");
  add_topic_words(out);
  text_puts(out, ")\n[[ -n ${(M)commands:#${command}:*} ]] || command=JOB\ncase $command:$before in\n");
  for (const struct option *option = option_table; option->name != NULL; option++)
    if (option->value != NULL && !option->hidden) add_zsh_value(out, option);
  text_puts(out, "esac\ncase $command in\n");
  for (const struct command *command = command_table + 1; command->name != NULL; command++)
    add_zsh_command(out, command);
  add_zsh_command(out, command_table);
  text_puts(out, "esac\nif [[ $words[CURRENT] == -* ]]; then\n"
                 "  [[ $CURRENT == 2 ]] && options+=('--version:print the version')\n"
                 "  _describe option options\n  return\nfi\n"
                 "if [[ $CURRENT == 2 ]]; then _describe command commands; fi\n"
                 "if [[ $CURRENT == 3 ]]; then compadd -- $words_of; fi\n_files\n");
}

/* ---- fish ---- */

/* Within single quotes, where fish knows \' and \\. */
static void add_fish_words(struct text *out, const char *words) {
  for (const char *at = words; *at != '\0'; at++) {
    if (*at == '\'' || *at == '\\') text_puts(out, "\\");
    text_add(out, at, 1);
  }
}

/* The commands that take an option, as the condition asks for them; "all" of all. */
static void add_fish_condition(struct text *out, const struct option *option) {
  text_puts(out, "complete -c accel-gen");
  if (strcmp(option->commands, " * ") == 0) return;
  text_puts(out, " -n '__accel_gen_is");
  for (const struct command *command = command_table; command->name != NULL; command++)
    if (command_takes(command, option)) text_printf(out, " %s", command->name);
  text_puts(out, "'");
}

static void add_fish_name(struct text *out, const char *name) {
  if (name != NULL) text_printf(out, name[1] == '-' ? " -l %s" : " -s %s", name + (name[1] == '-' ? 2 : 1));
}

static void add_fish_option(struct text *out, const struct option *option) {
  add_fish_condition(out, option);
  add_fish_name(out, option->name);
  add_fish_name(out, option->alias);
  if (option->choices != NULL) text_printf(out, " -x -a '%s'", option->choices);
  if (option->completes == COMPLETES_FOLDER) text_puts(out, " -x -a '(__fish_complete_directories)'");
  if (option->completes == COMPLETES_FILE) text_puts(out, " -r -F");
  if (option->completes == COMPLETES_KEY) text_puts(out, " -x -a '$__accel_gen_keys'");
  if (option->completes == COMPLETES_SETTING) text_puts(out, " -x -a '$__accel_gen_keys='");
  if (option->value != NULL && option->choices == NULL && option->completes == COMPLETES_NOTHING) text_puts(out, " -x");
  text_puts(out, " -d '");
  add_fish_words(out, option->summary);
  text_puts(out, "'\n");
}

static void add_fish_command(struct text *out, const struct command *command) {
  text_printf(out, "complete -c accel-gen -n '__accel_gen_at 1' -a %s -d '", command->name);
  add_fish_words(out, command->summary);
  text_puts(out, "'\n");
  const char *words = strcmp(command->name, "help") == 0 ? "$__accel_gen_topics" : command->words;
  if (words == NULL) return;
  text_printf(out, "complete -c accel-gen -n '__accel_gen_is %s; and __accel_gen_at 2' -a '%s'\n", command->name,
              words);
}

static void add_fish(struct text *out) {
  text_puts(out, "# Completion of accel-gen for fish.\nset -g __accel_gen_commands ");
  add_command_words(out);
  text_puts(out, "\nset -g __accel_gen_keys ");
  add_key_words(out);
  text_puts(out, "\nset -g __accel_gen_topics ");
  add_topic_words(out);
  text_puts(out, "\n\n# Whether the command is one of these.\n"
                 "function __accel_gen_is\n"
                 "    set -l words (commandline -opc)\n"
                 "    set -l command JOB\n"
                 "    contains -- \"$words[2]\" $__accel_gen_commands; and set command $words[2]\n"
                 "    contains -- $command $argv\n"
                 "end\n\n# Whether the word that is typed has this position.\n"
                 "function __accel_gen_at\n"
                 "    test (count (commandline -opc)) -eq $argv[1]\n"
                 "end\n\n"
                 "complete -c accel-gen -n '__accel_gen_at 1' -l version -d 'print the version'\n");
  for (const struct command *command = command_table + 1; command->name != NULL; command++)
    add_fish_command(out, command);
  for (const struct option *option = option_table; option->name != NULL; option++)
    if (!option->hidden) add_fish_option(out, option);
}

const char *completion_for(struct arena *arena, const char *shell) {
  struct text out = text_in(arena);
  if (strcmp(shell, "bash") == 0) add_bash(&out);
  if (strcmp(shell, "zsh") == 0) add_zsh(&out);
  if (strcmp(shell, "fish") == 0) add_fish(&out);
  return out.length > 0 ? text_string(&out) : NULL;
}
