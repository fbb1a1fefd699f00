/* The table of commands and options for other readers: man and the documents. */
#include <ctype.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/commands/cli/table.h"

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

/* A cell: the word for a value may contain a bar. */
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

const char *manual_as(struct arena *arena, const char *form) {
  struct text out = text_in(arena);
  if (strcmp(form, "man") == 0) add_man(&out);
  if (strcmp(form, "markdown") == 0) add_markdown(&out);
  const char *completion = completion_for(arena, form);
  return completion != NULL ? completion : text_string(&out);
}
