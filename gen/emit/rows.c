#include "gen/emit/rows.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gen/emit/values.h"

/* The most layers that the runtime's header has macros for. */
enum { MOST_LAYERS = 1023 };

/* How far the number is in which two names differ, and by how much; false: they do not differ in one number alone. */
static bool compare_names(const char *a, const char *b, size_t *at, int64_t *step) {
  size_t before = 0;
  while (a[before] != '\0' && a[before] == b[before]) before++;
  while (before > 0 && isdigit((unsigned char)a[before - 1])) before--;
  size_t x = strspn(a + before, "0123456789"), y = strspn(b + before, "0123456789");
  if (x == 0 || y == 0 || x > 9 || y > 9 || strcmp(a + before + x, b + before + y) != 0) return false;
  *at = before;
  *step = atoi(b + before) - atoi(a + before);
  return true;
}

/* Whether a row grows as much from the second layer to the third as from the first to the second. */
static bool in_step(const struct table_row *a, const struct table_row *b, const struct table_row *c) {
  size_t at[2];
  int64_t step[2];
  if (!compare_names(a->name, b->name, &at[0], &step[0]) || !compare_names(b->name, c->name, &at[1], &step[1]) ||
      at[0] != at[1] || step[0] != step[1])
    return false;
  if (memcmp(a->same, b->same, sizeof a->same) != 0 || memcmp(b->same, c->same, sizeof b->same) != 0) return false;
  for (size_t i = 0; i < sizeof a->steps / sizeof a->steps[0]; i++)
    if (b->steps[i] - a->steps[i] != c->steps[i] - b->steps[i]) return false;
  return true;
}

/* The layers of so many rows each that begin with the first of `left` rows; a count of 2 or less: there are none. */
static struct repeat layers_of(const struct table_row *row, int left, int rows) {
  struct repeat found = {.rows = rows, .count = 2};
  for (int i = 0; found.count < MOST_LAYERS && (found.count + 1) * rows <= left; i++) {
    if (!in_step(row + i, row + i + rows, row + i + 2 * rows)) break;
    if ((i + 1) % rows == 0) found.count++;
  }
  return found;
}

/* The layers that take in the most of the rows from the first one on. */
static struct repeat most_layers(const struct table_row *row, int left) {
  struct repeat best = {.rows = 1, .count = 1};
  for (int rows = 1; 3 * rows <= left; rows++) {
    struct repeat found = layers_of(row, left, rows);
    if (found.count > 2 && found.rows * found.count > best.rows * best.count) best = found;
  }
  return best;
}

/* "h.%d.attn.weight", of the rows of two layers. */
static const char *common_name(struct arena *arena, const char *a, const char *b) {
  size_t at;
  int64_t step;
  if (!compare_names(a, b, &at, &step)) return a;
  return arena_printf(arena, "%.*s%%d%s", (int)at, a, a + at + strspn(a + at, "0123456789"));
}

struct repeat_list find_repeats(struct arena *arena, struct table_row *rows, int count) {
  struct repeat_list list = {0};
  struct repeat found;
  for (int first = 0; first < count; first += found.rows * found.count) {
    found = most_layers(rows + first, count - first);
    found.first = first;
    if (found.count == 1) continue;
    ARENA_PUSH(arena, list, found);
    for (int i = first; i < first + found.rows; i++)
      rows[i].name = common_name(arena, rows[i].name, rows[i + found.rows].name);
  }
  return list;
}

struct jinja_value repeats_value(struct arena *arena, struct table_row *rows, int count) {
  struct jinja_value list = jinja_list(arena);
  struct repeat_list found = find_repeats(arena, rows, count);
  for (int i = 0; i < found.count; i++) {
    struct jinja_value value = jinja_map(arena);
    set_int(arena, value, "first", found.items[i].first);
    set_int(arena, value, "rows", found.items[i].rows);
    set_int(arena, value, "count", found.items[i].count);
    jinja_push(arena, list, value);
  }
  return list;
}

struct jinja_value table_value(struct arena *arena, struct table_row *rows, int count, int n_steps, int n_same) {
  struct jinja_value table = jinja_map(arena), names = jinja_list(arena), cells = jinja_list(arena);
  jinja_set(arena, table, "repeats", repeats_value(arena, rows, count));
  for (int i = 0; i < count; i++) {
    struct jinja_value row = jinja_list(arena), name = jinja_map(arena);
    set_comment(arena, name, "name", rows[i].name);
    jinja_push(arena, names, jinja_get(name, "name"));
    for (int k = 0; k < n_steps; k++) jinja_push(arena, row, jinja_int(rows[i].steps[k]));
    for (int k = 0; k < n_same; k++) jinja_push(arena, row, jinja_int(rows[i].same[k]));
    jinja_push(arena, cells, row);
  }
  jinja_set(arena, table, "names", names);
  jinja_set(arena, table, "cells", cells);
  return table;
}
