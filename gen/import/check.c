/* Which of the keys a job can have together. */
#include <stdlib.h>
#include <string.h>

#include "gen/import/import.h"
#include "gen/spec/assign.h"
#include "gen/spec/job.h"
#include "gen/spec/schema.h"

/* What a job must have, and a value with which its other keys are checked. */
static const struct {
  const char *key, *value;
  enum spec_kind kind;
  const char *with; /* only where the job has this group; NULL: always */
} needed[] = {
    {"model.source", "model.c", SPEC_STRING, NULL},
    {"model.lora.targets", "module", SPEC_LIST, "model.lora"},
    {"data.train.path", "train.txt", SPEC_STRING, NULL},
    {"data.train.format", "tokens", SPEC_STRING, NULL},
    {"data.batch_size", "1", SPEC_INT, NULL},
    {"training.steps", "1000000000", SPEC_INT, NULL},
};
enum { NEEDED = sizeof needed / sizeof *needed };

/* Whether the run's length is said in any unit. */
static bool has_length(const struct spec_node *job) {
  return spec_find(job, "training.steps") != NULL || spec_find(job, "training.epochs") != NULL ||
         spec_find(job, "training.samples") != NULL;
}

static bool lacks(const struct spec_node *job, int i) {
  if (needed[i].with != NULL && spec_find(job, needed[i].with) == NULL) return false;
  return strcmp(needed[i].key, "training.steps") == 0 ? !has_length(job) : spec_find(job, needed[i].key) == NULL;
}

/* The value of a needed key; of a list its one element. */
static struct spec_node *value_of(struct arena *arena, int i) {
  struct spec_node *value = arena_alloc(arena, sizeof *value);
  *value = (struct spec_node){.kind = needed[i].kind == SPEC_LIST ? SPEC_STRING : needed[i].kind,
                              .text = needed[i].value,
                              .length = strlen(needed[i].value),
                              .integer = strtoll(needed[i].value, NULL, 10),
                              .real = strtod(needed[i].value, NULL)};
  if (needed[i].kind != SPEC_LIST) return value;
  struct spec_entry *entry = arena_alloc(arena, sizeof *entry);
  *entry = (struct spec_entry){.value = value};
  struct spec_node *list = arena_alloc(arena, sizeof *list);
  *list = (struct spec_node){.kind = SPEC_LIST, .text = "", .entries = entry, .count = 1};
  return list;
}

/* The job with a value for each key that it lacks. */
static const struct spec_node *completed(const struct import *import) {
  const struct spec_node *job = import->job;
  struct diagnostics unread = diagnostics_in(import->arena);
  for (int i = 0; i < NEEDED; i++) {
    if (!lacks(import->job, i)) continue;
    const struct spec_node *with =
        document_assign(import->arena, import->schema, job, needed[i].key, value_of(import->arena, i), &unread);
    if (with != NULL) job = with;
  }
  return job;
}

/* ---- Rows at fault ---- */

static bool is_at(struct location a, struct location b) {
  return a.file != NULL && b.file != NULL && strcmp(a.file, b.file) == 0 && a.line == b.line && a.column == b.column;
}

/* The row that set what a message is about; NULL: none of them. */
static struct import_row *row_at(struct import *import, struct location where) {
  for (int i = 0; i < import->count; i++)
    for (int k = 0; k < import->items[i].count; k++) {
      struct import_row *row = &import->items[i].items[k];
      if (row->state == IMPORT_TAKEN && is_at(row->where, where)) return row;
    }
  return NULL;
}

static const char *last_word(const char *key) {
  const char *dot = strrchr(key, '.');
  return dot != NULL ? dot + 1 : key;
}

/* The row that set a key which a message names, where its location is none of theirs. */
static struct import_row *row_named(struct import *import, const char *message) {
  for (int i = 0; i < import->count; i++)
    for (int k = 0; k < import->items[i].count; k++) {
      struct import_row *row = &import->items[i].items[k];
      for (int n = 0; row->state == IMPORT_TAKEN && n < row->n_keys; n++) {
        const char *quoted = arena_printf(import->arena, "'%s'", row->keys[n]);
        const char *word = arena_printf(import->arena, "'%s'", last_word(row->keys[n]));
        if (strstr(message, quoted) != NULL || strstr(message, word) != NULL) return row;
      }
    }
  return NULL;
}

/* Whether a text has a dotted name, whole. */
static bool names_group(const char *text, const char *group) {
  static const char of_names[] = "abcdefghijklmnopqrstuvwxyz_.";
  const size_t length = strlen(group);
  for (const char *at = strstr(text, group); at != NULL; at = strstr(at + 1, group))
    if (at > text && at[-1] == ' ' && (at[length] == '\0' || strchr(of_names, at[length]) == NULL)) return true;
  return false;
}

/* The row that set a key of a group which a text names. */
static struct import_row *row_in_group(struct import *import, const char *text) {
  for (int i = 0; i < import->count; i++)
    for (int k = 0; k < import->items[i].count; k++) {
      struct import_row *row = &import->items[i].items[k];
      for (int n = 0; row->state == IMPORT_TAKEN && n < row->n_keys; n++) {
        const char *key = row->keys[n], *last = last_word(key);
        if (last > key && names_group(text, arena_copy(import->arena, key, (size_t)(last - key - 1)))) return row;
      }
    }
  return NULL;
}

/* Of "missing key 'eval_interval' in training, with training.early_stopping" the group that asks for the key, else the
 * one that lacks it. */
static struct import_row *row_of_group(struct import *import, const char *message) {
  const char *cause = strstr(message, ", with ");
  struct import_row *row = cause != NULL ? row_in_group(import, cause + 1) : NULL;
  return row != NULL ? row : row_in_group(import, message);
}

/* A copy of a group without a dotted key, and without groups that it leaves empty. */
static struct spec_node *without(struct arena *arena, const struct spec_node *group, const char *key) {
  const size_t length = strcspn(key, ".");
  struct spec_node *copy = spec_copy_map(arena, group, 0);
  copy->count = 0;
  for (int i = 0; i < group->count; i++) {
    struct spec_entry entry = group->entries[i];
    if (strlen(entry.key) == length && strncmp(entry.key, key, length) == 0) {
      if (key[length] == '\0') continue;
      entry.value = without(arena, entry.value, key + length + 1);
      if (entry.value->count == 0) continue;
    }
    copy->entries[copy->count++] = entry;
  }
  return copy;
}

/* Of a key in a group the row that says whether the group is on: fp16.enabled of fp16.hysteresis; NULL: none. */
static const struct import_row *switch_of(const struct import *import, const struct import_row *row) {
  const char *enabled = arena_printf(import->arena, "%.*senabled", (int)(last_word(row->key) - row->key), row->key);
  for (int i = 0; i < import->count; i++)
    for (int k = 0; k < import->items[i].count; k++) {
      const struct import_row *other = &import->items[i].items[k];
      const bool is_of_file = strcmp(other->where.file, row->where.file) == 0;
      if (other != row && is_of_file && strcmp(other->key, enabled) == 0) return other;
    }
  return NULL;
}

static void refuse(struct import *import, struct import_row *row, const char *says) {
  const struct import_row *group = switch_of(import, row);
  row->state = IMPORT_REFUSED;
  row->says = says;
  if (row->where.line == 0) {
    row->state = IMPORT_NEEDLESS;
    row->says = "it is the default there, and has no meaning with the other keys";
  } else if (group != NULL && (group->state == IMPORT_OPEN || group->state == IMPORT_NEEDLESS)) {
    row->state = group->state;
    row->says = arena_printf(import->arena, "as %s, on which it depends", group->key);
  }
  for (int i = 0; i < row->n_keys; i++) import->job = without(import->arena, import->job, row->keys[i]);
  row->n_keys = 0;
}

/* An error with the help that follows it. */
static const char *text_of(struct arena *arena, const struct diagnostics *diags, int i) {
  for (int k = i + 1; k < diags->count && diags->items[k].severity != SEVERITY_ERROR; k++)
    if (diags->items[k].severity == SEVERITY_HELP)
      return arena_printf(arena, "%s (%s)", diags->items[i].message, diags->items[k].message);
  return diags->items[i].message;
}

/* Refuses the row of the first error that has one; whether there is one. */
static bool refuse_first(struct import *import, const struct diagnostics *diags) {
  for (int i = 0; i < diags->count; i++) {
    if (diags->items[i].severity != SEVERITY_ERROR) continue;
    struct import_row *row = row_at(import, diags->items[i].where);
    if (row == NULL) row = row_named(import, diags->items[i].message);
    if (row == NULL) row = row_of_group(import, diags->items[i].message);
    if (row == NULL) continue;
    refuse(import, row, text_of(import->arena, diags, i));
    return true;
  }
  return false;
}

bool import_check(struct import *import, struct diagnostics *diags) {
  struct diagnostics found;
  struct job *job;
  do {
    found = diagnostics_in(import->arena);
    job = job_of_document(import->arena, (json_t *)import->schema, "job", completed(import), &found);
  } while (job == NULL && refuse_first(import, &found));
  for (int i = 0; i < NEEDED; i++)
    if (lacks(import->job, i)) import->missing[import->n_missing++] = needed[i].key;
  if (job == NULL)
    for (int i = 0; i < found.count; i++)
      if (found.items[i].severity == SEVERITY_ERROR)
        diag_error(diags, found.items[i].where, "%s", found.items[i].message);
  return job != NULL;
}
