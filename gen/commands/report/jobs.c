/* The jobs of a report's runs, and where they ran. */
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/commands/report/limit.h"
#include "gen/commands/report/page.h"

/* ---- Keys ---- */

static const struct job_key *key_of(const struct report_run *run, const char *name) {
  for (int i = 0; i < run->n_keys; i++)
    if (strcmp(run->keys[i].name, name) == 0) return &run->keys[i];
  return NULL;
}

/* The names of all runs' keys, those of a later run after the one that they follow in it. */
struct names {
  const char **items;
  int count, capacity;
};

static int index_of(const struct names *names, const char *name) {
  int i = 0;
  while (i < names->count && strcmp(names->items[i], name) != 0) i++;
  return i < names->count ? i : -1;
}

static struct names all_names(struct arena *arena, const struct report_run *runs, int count) {
  struct names names = {0};
  for (int i = 0; i < count; i++) {
    int after = -1;
    for (int k = 0; k < runs[i].n_keys; k++) {
      const int found = index_of(&names, runs[i].keys[k].name);
      if (found < 0) {
        ARENA_PUSH(arena, names, runs[i].keys[k].name);
        memmove(names.items + after + 2, names.items + after + 1,
                (size_t)(names.count - after - 2) * sizeof *names.items);
        names.items[after + 1] = runs[i].keys[k].name;
      }
      after = found >= 0 ? found : after + 1;
    }
  }
  return names;
}

/* Whether runs of which the job is known have other values. */
static bool differs(const struct report_run *runs, int count, const char *name) {
  const struct job_key *first = NULL;
  bool any = false;
  for (int i = 0; i < count; i++) {
    if (runs[i].job_file == NULL) continue;
    const struct job_key *key = key_of(&runs[i], name);
    if (any && ((key == NULL) != (first == NULL) || (key != NULL && strcmp(key->value, first->value) != 0)))
      return true;
    first = key;
    any = true;
  }
  return false;
}

static bool is_stated(const struct report_run *runs, int count, const char *name) {
  for (int i = 0; i < count; i++) {
    const struct job_key *key = key_of(&runs[i], name);
    if (key != NULL && !key->at_default) return true;
  }
  return false;
}

static struct jinja_value key_row(struct arena *arena, const struct report_run *runs, int count, const char *name) {
  struct jinja_value row = jinja_map(arena), values = jinja_list(arena);
  for (int i = 0; i < count; i++) {
    const struct job_key *key = key_of(&runs[i], name);
    struct jinja_value value = jinja_map(arena);
    const char *none = runs[i].job_file == NULL ? "unknown" : runs[i].has_defaults ? "none" : "default";
    jinja_set(arena, value, "text", page_text(arena, key != NULL ? key->value : none));
    jinja_set(arena, value, "stated", jinja_bool(key != NULL && !key->at_default));
    jinja_push(arena, values, value);
  }
  jinja_set(arena, row, "name", page_text(arena, name));
  jinja_set(arena, row, "values", values);
  return row;
}

/* ---- Machines ---- */

struct row {
  const char *name, *group, *key; /* in run.json: of its object `group`, NULL: of itself */
  enum { AS_TEXT, AS_COUNT, AS_BYTES } as;
};

static const struct row rows[] = {
    {"model", NULL, "summary", AS_TEXT},
    {"processes", NULL, "ranks", AS_COUNT},
    {"threads of each", NULL, "threads", AS_COUNT},
    {"processor", "machine", "processor", AS_TEXT},
    {"logical processors", "machine", "logical_processors", AS_COUNT},
    {"memory of the machine", "machine", "memory_bytes", AS_BYTES},
    {"memory planned", NULL, "arena_bytes", AS_BYTES},
    {"of a GPU", NULL, "device_bytes", AS_BYTES},
    {"system", "machine", "system", AS_TEXT},
};

static const char *cell_text(struct arena *arena, const json_t *record, const struct row *row) {
  const json_t *object = row->group != NULL ? json_object_get(record, row->group) : record;
  const json_t *value = json_object_get(object, row->key);
  if (json_is_string(value)) return arena_string(arena, json_string_value(value));
  if (!json_is_integer(value) || json_integer_value(value) <= 0) return "";
  const int64_t number = json_integer_value(value);
  return row->as == AS_BYTES ? bytes_text(arena, number) : count_text(arena, number);
}

static void add_row(struct arena *arena, struct jinja_value list, const char *name, const char **cells, int count) {
  struct jinja_value row = jinja_map(arena), values = jinja_list(arena);
  bool any = false;
  for (int i = 0; i < count; i++) {
    any |= cells[i] != NULL && cells[i][0] != '\0';
    jinja_push(arena, values, page_text(arena, cells[i] != NULL ? cells[i] : ""));
  }
  jinja_set(arena, row, "name", jinja_string(arena, name));
  jinja_set(arena, row, "values", values);
  if (any) jinja_push(arena, list, row);
}

/* "312 TFLOP/s of each process: devices.peak_flops" */
static const char *limit_text(struct arena *arena, const struct report_run *run) {
  const struct run_limit limit = report_limit(arena, run);
  if (limit.flops <= 0) return NULL;
  return arena_printf(arena, "%s/s of each process: %s", flops_text(arena, limit.flops), limit.source);
}

static struct jinja_value machine_of(struct arena *arena, const struct report_run *runs, int count) {
  struct jinja_value list = jinja_list(arena);
  const char **cells = arena_alloc(arena, (size_t)count * sizeof *cells);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    for (int i = 0; i < count; i++) cells[i] = cell_text(arena, runs[i].record, &rows[k]);
    add_row(arena, list, rows[k].name, cells, count);
  }
  for (int i = 0; i < count; i++) cells[i] = limit_text(arena, &runs[i]);
  add_row(arena, list, "limit of matrix products", cells, count);
  for (int i = 0; i < count; i++) cells[i] = runs[i].generator;
  add_row(arena, list, "generated by", cells, count);
  for (int i = 0; i < count; i++)
    cells[i] = runs[i].digest != NULL ? arena_printf(arena, "%.12s", runs[i].digest) : NULL;
  add_row(arena, list, "digest of the job", cells, count);
  for (int i = 0; i < count; i++) cells[i] = runs[i].argument;
  add_row(arena, list, "read from", cells, count);
  return list;
}

void page_add_jobs(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count) {
  struct jinja_value differences = jinja_list(arena), keys = jinja_list(arena);
  const struct names names = all_names(arena, runs, count);
  for (int i = 0; i < names.count; i++) {
    const bool other = differs(runs, count, names.items[i]);
    if (other || is_stated(runs, count, names.items[i]))
      jinja_push(arena, other ? differences : keys, key_row(arena, runs, count, names.items[i]));
  }
  jinja_set(arena, page, "differences", differences);
  jinja_set(arena, page, "keys", keys);
  jinja_set(arena, page, "machine", machine_of(arena, runs, count));
}
