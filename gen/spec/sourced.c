/* Sourced: the resolved job with where each value comes from, as comments. */
#include <string.h>

#include "gen/spec/job.h"
#include "gen/spec/node.h"

enum { WIDEST = 56 }; /* a line that is longer has its comment right after it */

struct notes {
  struct arena *arena;
  const struct job_override *overrides;
  int n_overrides;
  const char **items; /* of each line; NULL: it is a group, whose keys have their own */
  int count, capacity;
};

/* Whether the command line has set it, and not the plan, which sets what a job leaves open in the same way. */
static bool is_set(const struct notes *notes, const char *text) {
  for (int i = 0; i < notes->n_overrides; i++) {
    const struct job_override *set = &notes->overrides[i];
    if (strcmp(text, arena_printf(notes->arena, "--set %s=%s", set->key, set->value)) == 0) return true;
  }
  return false;
}

static const char *source_of_value(const struct notes *notes, const struct spec_node *value) {
  const struct location *where = &value->where;
  if (value->is_default) return "default";
  if (where->line > 0) return arena_printf(notes->arena, "%s:%d", where->file, where->line);
  return where->file != NULL && is_set(notes, where->file) ? "--set" : "found by the plan";
}

/* In the order of spec_write, which gives an entry a line. */
static void add_notes(struct notes *notes, const struct spec_node *map) {
  for (int i = 0; i < map->count; i++) {
    const struct spec_node *value = map->entries[i].value;
    bool group = value->kind == SPEC_MAP && value->count > 0;
    ARENA_PUSH(notes->arena, *notes, group ? NULL : source_of_value(notes, value));
    if (group) add_notes(notes, value);
  }
}

static int width_of(const struct notes *notes, const char *text) {
  int widest = 0;
  for (int i = 0; i < notes->count; i++) {
    int length = (int)strcspn(text, "\n");
    if (notes->items[i] != NULL && length > widest && length <= WIDEST) widest = length;
    text += length + 1;
  }
  return widest;
}

const char *job_sourced(struct arena *arena, const struct job *job, const struct job_override *overrides,
                        int n_overrides) {
  struct notes notes = {.arena = arena, .overrides = overrides, .n_overrides = n_overrides};
  struct text out = text_in(arena);
  const char *line = job_resolved(arena, job);
  add_notes(&notes, job->tree);
  int width = width_of(&notes, line);
  for (int i = 0; i < notes.count; i++) {
    int length = (int)strcspn(line, "\n");
    if (notes.items[i] != NULL)
      text_printf(&out, "%-*.*s  # %s\n", width, length, line, notes.items[i]);
    else
      text_printf(&out, "%.*s\n", length, line);
    line += length + 1;
  }
  return text_string(&out);
}
