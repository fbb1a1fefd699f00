#include "gen/commands/import/report.h"

#include <stdlib.h>
#include <string.h>

#include "gen/base/text.h"

enum { COLUMNS = 80, KEY = 34 };

static const char *const state_names[IMPORT_STATES] = {"taken", "needless", "open", "refused", "unknown"};

/* ---- For people ---- */

static const char *value_text(struct arena *arena, const struct spec_node *value) {
  enum { LONGEST = 40 };
  struct text out = text_in(arena);
  spec_write_value(&out, value);
  const char *text = text_string(&out);
  return strlen(text) > LONGEST ? arena_printf(arena, "%.*s...", LONGEST, text) : text;
}

/* "optimizer.lr: 0.001, optimizer.name: adamw" */
static void add_keys(struct text *out, const struct import *import, const struct import_row *row) {
  for (int i = 0; i < row->n_keys; i++) {
    const struct spec_node *value = spec_find(import->job, row->keys[i]);
    text_printf(out, "%s%s", i > 0 ? ", " : "", row->keys[i]);
    if (value != NULL) text_printf(out, ": %s", value_text(out->arena, value));
  }
}

static const char *words_of(const struct import *import, const struct import_row *row) {
  static const char *const openings[IMPORT_STATES] = {"", "not needed: ", "open: ", "REFUSED: ", "UNKNOWN: "};
  struct text out = text_in(import->arena);
  text_puts(&out, openings[row->state]);
  add_keys(&out, import, row);
  if (row->says != NULL) text_printf(&out, "%s%s", row->n_keys > 0 ? "; " : "", row->says);
  return text_string(&out);
}

static void add_row(struct text *out, const struct import *import, const struct import_row *row) {
  const char *line = row->where.line > 0 ? arena_printf(out->arena, "%5d", row->where.line) : "  its";
  const char *name = arena_printf(out->arena, "%s  %s: %s", line, row->key, value_text(out->arena, row->value));
  text_printf(out, "%-*s", KEY - 1, name);
  if (strlen(name) > KEY - 2)
    text_printf(out, "\n%*s", KEY, "");
  else
    text_puts(out, " ");
  text_fold(out, words_of(import, row), KEY, KEY, COLUMNS);
  text_puts(out, "\n");
}

static void add_counts(struct text *out, const struct import *import) {
  static const char *const words[IMPORT_STATES] = {"taken", "not needed", "open", "refused", "unknown"};
  int all = 0;
  for (int i = 0; i < IMPORT_STATES; i++) all += import_count(import, (enum import_state)i);
  text_printf(out, "%d key%s:", all, all == 1 ? "" : "s");
  for (int i = 0; i < IMPORT_STATES; i++)
    text_printf(out, "%s %d %s", i > 0 ? "," : "", import_count(import, (enum import_state)i), words[i]);
  text_puts(out, "\n");
}

static const char *missing_text(const struct import *import) {
  struct text out = text_in(import->arena);
  for (int i = 0; i < import->n_missing; i++)
    text_printf(&out, "%s%s", i == 0 ? "" : i + 1 < import->n_missing ? ", " : " and ", import->missing[i]);
  return text_string(&out);
}

const char *import_table(struct import *import) {
  struct text out = text_in(import->arena);
  for (int i = 0; i < import->count; i++) {
    const struct import_file *file = &import->items[i];
    text_printf(&out, "%s%s: %s\n", i > 0 ? "\n" : "", file->path, file->kind->says);
    for (int k = 0; k < file->count; k++) add_row(&out, import, &file->items[k]);
  }
  text_puts(&out, "\n");
  add_counts(&out, import);
  if (import->n_missing > 0) {
    text_fold(&out, arena_printf(import->arena, "the job lacks %s: no file sets them", missing_text(import)), 0, 0,
              COLUMNS);
    text_puts(&out, "\n");
  }
  return text_string(&out);
}

/* ---- For programs ---- */

static json_t *json_of_row(const struct import *import, const struct import_row *row) {
  json_t *keys = json_object();
  for (int i = 0; i < row->n_keys; i++) {
    const struct spec_node *value = spec_find(import->job, row->keys[i]);
    struct text text = text_in(import->arena);
    if (value != NULL) spec_write_value(&text, value);
    json_object_set_new(keys, row->keys[i], json_string(text_string(&text)));
  }
  struct text value = text_in(import->arena);
  spec_write_value(&value, row->value);
  return json_pack("{s:s, s:s, s:i, s:i, s:s, s:o, s:s?}", "key", row->key, "value", text_string(&value), "line",
                   row->where.line, "column", row->where.column, "state", state_names[row->state], "keys", keys, "says",
                   row->says);
}

const char *import_json(struct import *import) {
  json_t *files = json_array(), *counts = json_object(), *missing = json_array();
  for (int i = 0; i < import->count; i++) {
    const struct import_file *file = &import->items[i];
    json_t *rows = json_array();
    for (int k = 0; k < file->count; k++) json_array_append_new(rows, json_of_row(import, &file->items[k]));
    json_array_append_new(files,
                          json_pack("{s:s, s:s, s:o}", "file", file->path, "kind", file->kind->kind, "keys", rows));
  }
  for (int i = 0; i < IMPORT_STATES; i++)
    json_object_set_new(counts, state_names[i], json_integer(import_count(import, (enum import_state)i)));
  for (int i = 0; i < import->n_missing; i++) json_array_append_new(missing, json_string(import->missing[i]));
  json_t *whole = json_pack("{s:o, s:o, s:o}", "files", files, "counts", counts, "missing", missing);
  char *text = json_dumps(whole, JSON_INDENT(1));
  const char *copy = arena_printf(import->arena, "%s\n", text != NULL ? text : "null");
  free(text);
  json_decref(whole);
  return copy;
}

/* ---- The job ---- */

const char *import_job(struct import *import) {
  struct text out = text_in(import->arena);
  text_puts(&out, "# From");
  for (int i = 0; i < import->count; i++) text_printf(&out, "%s %s", i > 0 ? "," : "", import->items[i].path);
  text_puts(&out, ", by accel-gen import.\n");
  if (import->n_missing > 0) text_printf(&out, "# It lacks %s.\n", missing_text(import));
  spec_write(&out, import->job);
  if (import->job->count == 0) text_puts(&out, "{}\n");
  return text_string(&out);
}
