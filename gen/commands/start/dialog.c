#include "gen/commands/start/dialog.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/text.h"
#include "gen/spec/extends.h"
#include "gen/spec/job.h"
#include "gen/spec/override.h"
#include "gen/spec/schema.h"
#include "gen/spec/source.h"
#include "gen/spec/yaml.h"
#include "runtime/base/terminal.h"

static const struct spec_node *parse(struct arena *arena, const char *text) {
  struct diagnostics unread = diagnostics_in(arena);
  return yaml_parse(arena, source_of(arena, "", text, strlen(text), true, &unread), &unread);
}

struct dialog dialog_open(struct arena *arena, const char *below, bool asks) {
  return (struct dialog){.arena = arena,
                         .schema = schema_of_job(),
                         .document = parse(arena, "{}"),
                         .below = parse(arena, below),
                         .asks = asks};
}

void dialog_close(struct dialog *dialog) {
  json_decref(dialog->schema);
}

bool dialog_has_person(void) {
  return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

bool dialog_check(const struct dialog *dialog, const char *file, struct diagnostics *diags) {
  const struct spec_node *whole = extends_merge(dialog->arena, dialog->below, dialog->document, diags);
  return whole != NULL && job_of_document(dialog->arena, dialog->schema, file, whole, diags) != NULL;
}

void dialog_set(struct dialog *dialog, const char *key, const char *value) {
  struct diagnostics unread = diagnostics_in(dialog->arena);
  const struct job_override set = {key, value};
  dialog->document = override_apply(dialog->arena, dialog->document, &set, &unread);
}

/* A line without its end; NULL at the end of the input. */
static const char *read_line(struct arena *arena) {
  char line[4096];
  fflush(stderr);
  if (fgets(line, sizeof line, stdin) == NULL) return NULL;
  const char *start = line + strspn(line, " \t");
  size_t length = strcspn(start, "\r\n");
  while (length > 0 && (start[length - 1] == ' ' || start[length - 1] == '\t')) length--;
  return arena_copy(arena, start, length);
}

/* "no, bf16, fp16" of a key that is one of several words; NULL for another. */
static const char *choices_of(const struct dialog *dialog, const char *key) {
  const json_t *schema = schema_find(dialog->schema, key), *words = schema_keyword(dialog->schema, schema, "enum"),
               *word;
  struct text out = text_in(dialog->arena);
  size_t i;
  json_array_foreach(words, i, word) text_printf(&out, "%s%s", i > 0 ? ", " : "", json_string_value(word));
  return words != NULL ? text_string(&out) : NULL;
}

/* On a terminal that is narrow, in several lines. */
static void prompt(struct arena *arena, const char *question, const char *choices, const char *preset) {
  enum { WIDE = 1 << 20 };
  const int columns = rt_terminal_columns(STDERR_FILENO);
  struct text words = text_in(arena), folded = text_in(arena);
  text_puts(&words, question);
  if (choices != NULL) text_printf(&words, " (%s)", choices);
  if (preset != NULL) text_printf(&words, " [%s]", preset);
  text_puts(&words, ":");
  text_fold(&folded, text_string(&words), 0, 2, columns > 0 ? columns : WIDE);
  fprintf(stderr, "%s ", text_string(&folded));
}

bool dialog_take(struct dialog *dialog, const char *key, const char *value) {
  const struct spec_node *before = dialog->document;
  struct diagnostics diags = diagnostics_in(dialog->arena);
  const struct job_override set = {key, value};
  dialog->document = override_apply(dialog->arena, before, &set, &diags);
  if (diags.errors == 0 && dialog_check(dialog, "job", &diags)) return true;
  dialog->document = before;
  for (int i = 0; i < diags.count; i++)
    if (diags.items[i].severity == SEVERITY_ERROR || i == 1) rt_print(stderr, "  %s\n", diags.items[i].message);
  return false;
}

static bool ask(struct dialog *dialog, const char *key, const char *question, const char *preset) {
  for (;;) {
    prompt(dialog->arena, question, choices_of(dialog, key), preset);
    const char *answer = read_line(dialog->arena);
    if (answer == NULL) return false;
    if (strcmp(answer, "?") == 0) {
      rt_print_text(stderr, job_help(dialog->arena, key));
      continue;
    }
    if (answer[0] == '\0' && preset == NULL) return true;
    if (dialog_take(dialog, key, answer[0] != '\0' ? answer : preset)) return true;
  }
}

bool dialog_confirm(struct dialog *dialog, const char *key, const char *question) {
  struct text preset = text_in(dialog->arena);
  if (!dialog->asks) return true;
  spec_write_value(&preset, spec_find(dialog->document, key));
  return ask(dialog, key, question, text_string(&preset));
}

bool dialog_ask(struct dialog *dialog, const char *key, const char *question, const char *preset) {
  if (spec_find(dialog->document, key) != NULL) return true;
  if (!dialog->asks) {
    if (preset != NULL) dialog_set(dialog, key, preset);
    return true;
  }
  return ask(dialog, key, question, preset);
}

const char *dialog_word(struct dialog *dialog, const char *question, const char *choices, const char *preset) {
  while (dialog->asks) {
    prompt(dialog->arena, question, choices != NULL ? choices + 1 : NULL, preset);
    const char *answer = read_line(dialog->arena);
    if (answer == NULL) return NULL;
    if (answer[0] == '\0' && preset != NULL) return preset;
    if (answer[0] != '\0' && (choices == NULL || text_names(choices, answer, false))) return answer;
  }
  return preset;
}
