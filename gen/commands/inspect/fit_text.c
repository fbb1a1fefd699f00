/* What --fit has found, for people and for programs. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/inspect/fit.h"

/* ---- For people ---- */

enum { NAME = 9, WAY = 15, SIZE = 16, BYTES = 12, WIDTH = 100 };

static void add_size(struct text *text, const struct fitted *fitted, int width) {
  const struct fit *fit = &fitted->fit;
  struct arena *arena = text->arena;
  if (fit->size > 0)
    text_printf(text, "%*s %*s", width, count_text(arena, fit->size), BYTES, bytes_text(arena, fit->bytes.total));
  else if (fit->next_bytes > 0)
    text_printf(text, "%*s %*s", width, "none", BYTES, arena_printf(arena, "(%s)", bytes_text(arena, fit->next_bytes)));
  else
    text_printf(text, "%*s %*s", width, "-", BYTES, "-");
}

static void add_row(struct text *text, const struct fit_row *row, bool sequences) {
  text_printf(text, "%-*s %-*s", NAME, row->setting, WAY, row->checkpointing);
  if (row->refusal != NULL) {
    const char *words = arena_printf(text->arena, "refused: %s", row->refusal);
    text_puts(text, " ");
    text_fold(text, words, NAME + WAY + 2, NAME + WAY + 2, WIDTH);
  } else {
    add_size(text, &row->batch, SIZE);
    if (sequences) add_size(text, &row->sequence, SIZE + 2);
  }
  text_puts(text, "\n");
}

/* A key as a shell takes it. */
static void add_key(struct text *text, const struct job_override *key) {
  const char *word = arena_printf(text->arena, "%s=%s", key->key, key->value);
  text_printf(text, " --set %s", shell_word(text->arena, word));
}

static void add_keys(struct text *text, const struct fit_table *table) {
  bool first = true;
  for (int i = 0; i < table->rows.count; i++) {
    const struct fit_row *row = &table->rows.items[i];
    if (row->n_keys == 0 || row->refusal != NULL) continue;
    text_printf(text, "%s%-*s %-*s", first ? "\n" : "", NAME, row->setting, WAY, row->checkpointing);
    for (int k = 0; k < row->n_keys; k++) add_key(text, &row->keys[k]);
    text_puts(text, "\n");
    first = false;
  }
}

/* What sets the sizes themselves. */
static void add_size_keys(struct text *text, const struct fit_table *table) {
  const struct fit_row *longest = NULL, *row = NULL;
  for (int i = 0; i < table->rows.count; i++) {
    const struct fit_row *at = &table->rows.items[i];
    if (at->refusal != NULL || at->batch.n_keys == 0) continue;
    if (row == NULL) row = at;
    if (at->sequence.n_keys > (longest != NULL ? longest->sequence.n_keys : 0)) longest = at;
  }
  if (row == NULL) return;
  text_printf(text, "\n%-*s", NAME + 1, "batch");
  for (int k = 0; k < row->batch.n_keys; k++) text_printf(text, " --set %s=N", row->batch.keys[k].key);
  if (longest != NULL) text_printf(text, "\n%-*s", NAME + 1, "sequence");
  for (int k = 0; longest != NULL && k < longest->sequence.n_keys; k++)
    text_printf(text, " --set %s=N", longest->sequence.keys[k].key);
  text_puts(text, "\n");
}

/* Why a size is the largest where that is not the memory. Rows that differ in nothing of it have it once. */
static void add_end(struct text *text, struct text *said, const struct fit_row *row, const struct fitted *fitted,
                    const char *what) {
  if (row->refusal != NULL || fitted->fit.size == 0 || fitted->fit.refusal == NULL) return;
  const char *words = arena_printf(text->arena, "A %s of %s is the largest: %s.\n", what,
                                   count_text(text->arena, fitted->fit.size), fitted->fit.refusal);
  if (strstr(text_string(said), words) != NULL) return;
  if (said->length == 0) text_puts(text, "\n");
  text_puts(said, words);
  text_fold(text, words, 0, 2, WIDTH);
}

/* A line of the head, without blanks at its end. */
static void add_head(struct text *text, const char *way, const char *batch, const char *bytes, const char *sequence,
                     const char *last) {
  struct text line = text_in(text->arena);
  text_printf(&line, "%-*s %-*s%*s %*s%*s %*s", NAME, "", WAY, way, SIZE, batch, BYTES, bytes, SIZE + 2, sequence,
              BYTES, last);
  while (line.length > 0 && line.bytes[line.length - 1] == ' ') line.length--;
  text_add(text, line.bytes, line.length);
  text_puts(text, "\n");
}

const char *fit_text(struct arena *arena, const struct fit_table *table) {
  struct text text = text_in(arena);
  const bool sequences = table->tokens > 0;
  text_printf(&text, "memory    %s: %s\n\n", bytes_text(arena, table->memory), table->reason);
  add_head(&text, "activation", "largest batch", "", sequences ? "longest sequence" : "", "");
  add_head(&text, "checkpointing", sequences ? arena_printf(arena, "x %lld tokens", (long long)table->tokens) : "",
           "takes", sequences ? arena_printf(arena, "in batches of %lld", (long long)table->batch) : "",
           sequences ? "takes" : "");
  for (int i = 0; i < table->rows.count; i++) add_row(&text, &table->rows.items[i], sequences);
  add_keys(&text, table);
  add_size_keys(&text, table);
  if (!sequences) text_puts(&text, "\nThe samples are rows, whose sizes are those of the data.\n");
  struct text said = text_in(arena);
  for (int i = 0; i < table->rows.count; i++) {
    const struct fit_row *row = &table->rows.items[i];
    add_end(&text, &said, row, &row->batch, "batch");
    add_end(&text, &said, row, &row->sequence, "sequence");
  }
  return text_string(&text);
}

/* ---- For programs ---- */

static json_t *keys_json(const struct job_override *keys, int count) {
  json_t *object = json_object();
  for (int i = 0; i < count; i++) json_object_set_new(object, keys[i].key, json_string(keys[i].value));
  return object;
}

static json_t *fitted_json(const struct fitted *fitted) {
  const struct fit *fit = &fitted->fit;
  json_t *object = json_pack("{s:I, s:I, s:o}", "size", (json_int_t)fit->size, "bytes", (json_int_t)fit->bytes.total,
                             "keys", keys_json(fitted->keys, fitted->n_keys));
  if (fit->bytes.host > 0) json_object_set_new(object, "host_bytes", json_integer((json_int_t)fit->bytes.host));
  if (fit->next > 0) json_object_set_new(object, "next", json_integer((json_int_t)fit->next));
  if (fit->next_bytes > 0) json_object_set_new(object, "next_bytes", json_integer((json_int_t)fit->next_bytes));
  if (fit->refusal != NULL) json_object_set_new(object, "ends", json_string(fit->refusal));
  return object;
}

static json_t *row_json(const struct fit_row *row, bool sequences) {
  json_t *object = json_pack("{s:s, s:s, s:o}", "setting", row->setting, "activation_checkpointing", row->checkpointing,
                             "keys", keys_json(row->keys, row->n_keys));
  if (row->refusal != NULL) {
    json_object_set_new(object, "refused", json_string(row->refusal));
    return object;
  }
  json_object_set_new(object, "batch_size", fitted_json(&row->batch));
  if (sequences) json_object_set_new(object, "sequence_length", fitted_json(&row->sequence));
  return object;
}

const char *fit_json(struct arena *arena, const struct fit_table *table) {
  json_t *rows = json_array();
  for (int i = 0; i < table->rows.count; i++)
    json_array_append_new(rows, row_json(&table->rows.items[i], table->tokens > 0));
  json_t *root = json_pack("{s:{s:I, s:s, s:I, s:o}}", "fit", "memory_bytes", (json_int_t)table->memory, "memory_of",
                           table->origin, "batch_size", (json_int_t)table->batch, "settings", rows);
  if (table->tokens > 0)
    json_object_set_new(json_object_get(root, "fit"), "sequence_length", json_integer((json_int_t)table->tokens));
  char *text = json_dumps(root, JSON_INDENT(2));
  const char *copy = arena_printf(arena, "%s\n", text);
  free(text);
  json_decref(root);
  return copy;
}
