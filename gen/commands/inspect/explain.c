/* accel-gen explain: from a line of a program to where it comes from, and from a key of the job to its lines. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/inspect/recorded.h"
#include "gen/provenance/json.h"
#include "gen/spec/job.h"
#include "runtime/base/terminal.h"

enum { MOST_KEYS = 8 }; /* that are reported in full without -v */

struct explainer {
  const struct options *options;
  struct arena *arena;
  struct diagnostics diags;
  struct recorded program;
  struct text out;
};

/* ---- What both ways say ---- */

static const char *line_text(const struct explainer *e, int line) {
  return arena_copy(e->arena, e->program.lines.starts[line], (size_t)e->program.lines.lengths[line]);
}

/* "0.0005, 0.002" */
static const char *list_text(struct arena *arena, const struct manifest_list *list) {
  struct text text = text_in(arena);
  for (int i = 0; i < list->count; i++) text_printf(&text, "%s%s", i > 0 ? ", " : "", list->items[i]);
  return text_string(&text);
}

static void put_key(struct explainer *e, const struct manifest_key *key, int indent) {
  const char *sentence = job_sentence(e->arena, key->key);
  text_printf(&e->out, "%s = %s (%s)\n", key->key, key->value, key->where[0] != '\0' ? key->where : "the default");
  if (sentence != NULL) text_printf(&e->out, "%*s%s\n", indent, "", sentence);
}

static json_t *strings(const struct manifest_list *list) {
  json_t *array = json_array();
  for (int i = 0; i < list->count; i++) json_array_append_new(array, json_text(list->items[i]));
  return array;
}

static json_t *key_object(const struct manifest_key *key) {
  json_t *object = json_object();
  json_put(object, "key", key->key);
  json_put(object, "value", key->value);
  if (key->where[0] != '\0') json_put(object, "where", key->where);
  json_object_set_new(object, "tried", strings(&key->tried));
  return object;
}

/* ---- From a line ---- */

/* Whether the file is still the one that the program was made of. */
static bool is_as_then(const struct explainer *e, const char *name, const char *text, size_t length) {
  const struct manifest_files *inputs = &e->program.manifest->inputs;
  for (int i = 0; i < inputs->count; i++)
    if (strcmp(inputs->items[i].name, name) == 0)
      return strcmp(inputs->items[i].sha256, digest_of(e->arena, text, length)) == 0;
  return false;
}

/* ": " and the text of a line of the model, without its indentation; "" where the file is not there as it was. */
static const char *source_line(const struct explainer *e, const char *location) {
  const char *colon = strrchr(location, ':');
  if (colon == NULL) return "";
  const char *name = arena_copy(e->arena, location, (size_t)(colon - location));
  const char *file =
      name[0] == '/' ? name : arena_printf(e->arena, "%s/%s", folder_of(e->arena, e->program.path), name);
  size_t length;
  const char *text = read_bytes(e->arena, file, &length);
  int line = atoi(colon + 1);
  if (text == NULL || !is_as_then(e, name, text, length)) return "";
  struct lines lines = lines_of(e->arena, text, length);
  if (line < 1 || line > lines.count) return "";
  const char *start = lines.starts[line - 1];
  int blank = (int)strspn(start, " \t");
  return blank < lines.lengths[line - 1]
             ? arena_printf(e->arena, ": %.*s", lines.lengths[line - 1] - blank, start + blank)
             : "";
}

static void put_locations(struct explainer *e, const struct manifest_line *line) {
  text_printf(&e->out, "  template  %s\n", list_text(e->arena, &line->templates));
  if (line->callers.count > 0) text_printf(&e->out, "            from %s\n", list_text(e->arena, &line->callers));
  for (int i = 0; i < line->model.count; i++)
    text_printf(&e->out, "  %-8s  %s%s\n", i == 0 ? "model" : "", line->model.items[i],
                source_line(e, line->model.items[i]));
}

/* "optimizer (7)": the groups of many keys, and how many of each. */
static void put_groups(struct explainer *e, const struct manifest_line *line) {
  const struct manifest_key *keys = e->program.manifest->keys;
  const char *before = "  keys      ";
  for (int i = 0; i < line->n_keys;) {
    const char *key = keys[line->keys[i]].key;
    size_t length = strcspn(key, ".");
    int count = 0;
    for (; i < line->n_keys && strncmp(keys[line->keys[i]].key, key, length + 1) == 0; i++) count++;
    text_printf(&e->out, "%s%.*s (%d)", before, (int)length, key, count);
    before = ", ";
  }
  text_puts(&e->out, "; -v lists them\n");
}

static void put_keys(struct explainer *e, const struct manifest_line *line) {
  if (line->n_keys == 0) {
    text_puts(&e->out, "  keys      none: no other value of a key gives another line\n");
  } else if (line->n_keys > MOST_KEYS && !e->options->verbose) {
    put_groups(e, line);
  } else {
    for (int i = 0; i < line->n_keys; i++) {
      const struct manifest_key *key = &e->program.manifest->keys[line->keys[i]];
      text_puts(&e->out, i == 0 ? "  keys      " : "            ");
      put_key(e, key, 14);
    }
  }
}

static void put_line_json(struct explainer *e, int number) {
  const struct manifest_line *line = &e->program.manifest->lines[number];
  json_t *object = json_object(), *keys = json_array();
  for (int i = 0; i < line->n_keys; i++)
    json_array_append_new(keys, key_object(&e->program.manifest->keys[line->keys[i]]));
  json_put(object, "file", e->program.path);
  json_object_set_new(object, "line", json_integer(number + 1));
  json_put(object, "text", line_text(e, number));
  json_object_set_new(object, "template", strings(&line->templates));
  json_object_set_new(object, "from", strings(&line->callers));
  json_object_set_new(object, "model", strings(&line->model));
  json_object_set_new(object, "keys", keys);
  json_add_indented(&e->out, object);
}

/* Where ":812" begins at the end of text[0..length), after a name; 0 where it ends otherwise. */
static size_t number_after(const char *text, size_t length) {
  size_t at = length;
  while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') at--;
  return at > 1 && at < length && text[at - 1] == ':' ? at - 1 : 0;
}

/* A line is named as "trainer.c:812", or with a column, "trainer.c:812:36", as messages have it. */
static int explain_line(struct explainer *e) {
  const char *argument = e->options->argument;
  size_t last = number_after(argument, strlen(argument)), first = number_after(argument, last);
  size_t colon = first > 0 ? first : last;
  if (colon == 0) {
    diag_error(&e->diags, (struct location){0}, "'%s' names no line", argument);
    diag_help(&e->diags, "write PROGRAM.c:LINE, or --key KEY PROGRAM.c");
    return STATUS_BAD_JOB;
  }
  const char *program = arena_copy(e->arena, argument, colon), *line_number = argument + colon + 1;
  long number = strtol(line_number, NULL, 10);
  if (!recorded_read(e->arena, program, &e->program, &e->diags)) return STATUS_CANNOT;
  if (number < 1 || number > e->program.lines.count) {
    diag_error(&e->diags, (struct location){.file = program}, "there is no line %.*s; there are %d",
               (int)strcspn(line_number, ":"), line_number, e->program.lines.count);
    return STATUS_BAD_JOB;
  }
  const struct manifest_line *line = &e->program.manifest->lines[number - 1];
  if (e->options->json) {
    put_line_json(e, (int)number - 1);
    return STATUS_OK;
  }
  text_printf(&e->out, "%s:%ld: %s\n", program, number, line_text(e, (int)number - 1));
  put_locations(e, line);
  put_keys(e, line);
  return STATUS_OK;
}

/* ---- From a key ---- */

static bool is_asked(const char *asked, const char *key) {
  size_t length = strlen(asked);
  return strncmp(asked, key, length) == 0 && (key[length] == '\0' || key[length] == '.');
}

static const char *first_template(const struct manifest_line *line) {
  return line->templates.count > 0 ? line->templates.items[0] : "";
}

/* The last line of those after `first` that have the key, too, and come from the same template. */
static int end_of_range(const struct explainer *e, int first, int key) {
  const struct manifest *manifest = e->program.manifest;
  const char *template = first_template(&manifest->lines[first]);
  size_t length = strcspn(template, ":") + 1;
  int last = first;
  while (last + 1 < manifest->n_lines && manifest_has_key(&manifest->lines[last + 1], key) &&
         strncmp(first_template(&manifest->lines[last + 1]), template, length) == 0)
    last++;
  return last;
}

static void put_range(struct explainer *e, int first, int last) {
  const char *lines =
      first == last ? arena_printf(e->arena, "%d", first + 1) : arena_printf(e->arena, "%d-%d", first + 1, last + 1);
  const char *text = line_text(e, first);
  text += strspn(text, " ");
  text_printf(&e->out, "  %-11s %-32s %.60s%s\n", lines, first_template(&e->program.manifest->lines[first]), text,
              strlen(text) > 60 ? "..." : "");
}

static void put_lines_of(struct explainer *e, int key) {
  const struct manifest *manifest = e->program.manifest;
  const struct manifest_key *the = &manifest->keys[key];
  int count = 0;
  for (int i = 0; i < manifest->n_lines; i++) count += manifest_has_key(&manifest->lines[i], key);
  put_key(e, the, 2);
  if (the->tried.count == 0)
    text_puts(&e->out, "  no other value that was tried is good in this job\n");
  else
    text_printf(&e->out, "  %d of %d lines are others with %s%s\n", count, manifest->n_lines,
                the->tried.count > 1 ? "one of " : "", list_text(e->arena, &the->tried));
  for (int i = 0; i < manifest->n_lines; i++) {
    if (!manifest_has_key(&manifest->lines[i], key)) continue;
    int last = end_of_range(e, i, key);
    put_range(e, i, last);
    i = last;
  }
}

static json_t *lines_object(struct explainer *e, int key) {
  const struct manifest *manifest = e->program.manifest;
  json_t *object = key_object(&manifest->keys[key]), *ranges = json_array();
  for (int i = 0; i < manifest->n_lines; i++) {
    if (!manifest_has_key(&manifest->lines[i], key)) continue;
    int last = end_of_range(e, i, key);
    json_t *range = json_object();
    json_object_set_new(range, "first", json_integer(i + 1));
    json_object_set_new(range, "last", json_integer(last + 1));
    json_put(range, "template", first_template(&manifest->lines[i]));
    json_array_append_new(ranges, range);
    i = last;
  }
  json_object_set_new(object, "lines", ranges);
  return object;
}

static int no_such_key(struct explainer *e, const char *asked) {
  const struct manifest *manifest = e->program.manifest;
  const char **names = arena_alloc(e->arena, ((size_t)manifest->n_keys + 1) * sizeof *names);
  for (int i = 0; i < manifest->n_keys; i++) names[i] = manifest->keys[i].key;
  const char *near = nearest_word(asked, names, manifest->n_keys);
  bool known = job_sentence(e->arena, asked) != NULL;
  diag_error(&e->diags, (struct location){.file = e->program.path}, "the job of this program has no key '%s'", asked);
  if (known)
    diag_help(&e->diags, "the key is not set, and has no default in this job");
  else if (near != NULL)
    diag_help(&e->diags, "did you mean '%s'?", near);
  return STATUS_BAD_JOB;
}

static int explain_key(struct explainer *e) {
  const char *asked = e->options->key;
  if (!recorded_read(e->arena, e->options->argument, &e->program, &e->diags)) return STATUS_CANNOT;
  json_t *list = json_array();
  int found = 0;
  for (int i = 0; i < e->program.manifest->n_keys; i++) {
    if (!is_asked(asked, e->program.manifest->keys[i].key)) continue;
    if (e->options->json) {
      json_array_append_new(list, lines_object(e, i));
    } else {
      text_puts(&e->out, found > 0 ? "\n" : "");
      put_lines_of(e, i);
    }
    found++;
  }
  if (e->options->json && found > 0)
    json_add_indented(&e->out, list);
  else
    json_decref(list);
  return found > 0 ? STATUS_OK : no_such_key(e, asked);
}

int command_explain(const struct options *options) {
  struct explainer e = {.options = options,
                        .arena = options->arena,
                        .diags = diagnostics_in(options->arena),
                        .out = text_in(options->arena)};
  int status = options->key != NULL ? explain_key(&e) : explain_line(&e);
  if (e.diags.count > 0) diag_print(&e.diags, stderr, options->colour);
  if (options->json)
    fputs(text_string(&e.out), stdout);
  else
    rt_print_text(stdout, text_string(&e.out));
  return status;
}
