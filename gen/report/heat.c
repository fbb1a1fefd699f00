#include "gen/report/heat.h"

#include <math.h>
#include <string.h>

#include "gen/base/text.h"

/* ---- Rows ---- */

/* How many bytes of a name its first `parts` parts between dots have. */
static size_t length_of(const char *name, int parts) {
  size_t length = 0;
  for (int i = 0; i < parts && name[length] != '\0'; i++) {
    if (i > 0) length++;
    length += strcspn(name + length, ".");
  }
  return length;
}

static int row_of(const struct heat *heat, const char *name, int parts) {
  const size_t length = length_of(name, parts);
  for (int i = 0; i < heat->n_rows; i++)
    if (strlen(heat->rows[i].name) == length && strncmp(heat->rows[i].name, name, length) == 0) return i;
  return -1;
}

/* Makes the rows of names of so many parts. False: they are too many. */
static bool make_rows(struct arena *arena, struct heat *heat, const struct metrics *metrics, const char *prefix,
                      int parts) {
  heat->n_rows = heat->n_series = 0;
  for (int i = 0; i < metrics->n_series; i++) {
    const char *name = metrics->series[i].name;
    if (strncmp(name, prefix, strlen(prefix)) != 0) continue;
    name += strlen(prefix);
    int row = row_of(heat, name, parts);
    if (row < 0 && heat->n_rows == HEAT_ROWS) return false;
    if (row < 0) {
      row = heat->n_rows++;
      heat->rows[row] = (struct heat_row){.name = arena_copy(arena, name, length_of(name, parts))};
    }
    heat->rows[row].series++;
    heat->n_series++;
  }
  return true;
}

/* ---- Cells ---- */

static int column_at(const struct heat *heat, const struct metrics *metrics, int column) {
  return (int)((int64_t)column * heat->n_columns / metrics->n_columns);
}

/* The mean of a series over the lines of a column; below 0: there is none. */
static double norm_in(const struct heat *heat, const struct metrics *metrics, const struct series *series, int column) {
  double sum = 0;
  int64_t count = 0;
  for (int k = 0; k < metrics->n_columns; k++) {
    if (column_at(heat, metrics, k) != column) continue;
    sum += series->cells[k].sum;
    count += series->cells[k].count;
  }
  return count > 0 ? fabs(sum / (double)count) : -1;
}

static void add_squares(struct heat *heat, const struct metrics *metrics, const struct series *series,
                        struct heat_row *row) {
  for (int k = 0; k < heat->n_columns; k++) {
    const double norm = norm_in(heat, metrics, series, k);
    if (norm < 0) continue;
    row->norms[k] = row->norms[k] < 0 ? norm : hypot(row->norms[k], norm);
  }
}

static void fill(struct heat *heat, const struct metrics *metrics, const char *prefix, int parts) {
  for (int i = 0; i < heat->n_rows; i++)
    for (int k = 0; k < heat->n_columns; k++) heat->rows[i].norms[k] = -1;
  for (int i = 0; i < metrics->n_series; i++) {
    const struct series *series = &metrics->series[i];
    if (strncmp(series->name, prefix, strlen(prefix)) == 0)
      add_squares(heat, metrics, series, &heat->rows[row_of(heat, series->name + strlen(prefix), parts)]);
  }
  for (int k = 0; k < metrics->n_columns; k++) heat->last[column_at(heat, metrics, k)] = metrics->columns[k].last;
}

static void find_range(struct heat *heat) {
  heat->least = INFINITY;
  heat->most = 0;
  for (int i = 0; i < heat->n_rows; i++)
    for (int k = 0; k < heat->n_columns; k++) {
      const double norm = heat->rows[i].norms[k];
      if (norm > 0 && isfinite(norm) && norm < heat->least) heat->least = norm;
      if (isfinite(norm) && norm > heat->most) heat->most = norm;
    }
  if (heat->most == 0) heat->least = heat->most = 1;
}

/* -1: there is nothing to draw. */
static int level_of(const struct heat *heat, double norm) {
  if (norm < 0) return -1;
  if (norm <= heat->least) return 0;
  const double part = log(norm / heat->least) / log(heat->most / heat->least);
  return part < 1 ? (int)(part * HEAT_LEVELS) : HEAT_LEVELS - 1;
}

/* Cells of a row in a row of one level are one rectangle. */
static void draw_level(struct text *out, const struct heat *heat, int level) {
  text_printf(out, "<path class=\"q%d\" d=\"", level);
  for (int i = 0; i < heat->n_rows; i++)
    for (int k = 0; k < heat->n_columns;) {
      const int from = k;
      while (k < heat->n_columns && level_of(heat, heat->rows[i].norms[k]) == level) k++;
      if (k > from) text_printf(out, "M%d %dh%dv1h%dz", from, i, k - from, from - k);
      if (k == from) k++;
    }
  text_puts(out, "\"/>\n");
}

struct heat *heat_of(struct arena *arena, const struct metrics *metrics, const char *prefix) {
  struct heat *heat = arena_alloc(arena, sizeof *heat);
  struct text out = text_in(arena);
  int parts = 12;
  while (parts > 1 && !make_rows(arena, heat, metrics, prefix, parts)) parts--;
  if (!make_rows(arena, heat, metrics, prefix, parts) || heat->n_rows == 0) return NULL;
  heat->n_columns = metrics->n_columns < HEAT_COLUMNS ? metrics->n_columns : HEAT_COLUMNS;
  fill(heat, metrics, prefix, parts);
  find_range(heat);
  for (int i = 0; i < HEAT_LEVELS; i++) draw_level(&out, heat, i);
  heat->paths = text_string(&out);
  return heat;
}
