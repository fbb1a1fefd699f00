/* Any bytes as metrics.jsonl: steps of columns increase, numbers of a cell are finite and in order, counts add up, all
 * that a page is made of is in its range, and its data are JSON. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/report/chart.h"
#include "gen/report/data.h"
#include "gen/report/heat.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool holds) {
  if (!holds) __builtin_trap();
}

static void check_columns(const struct metrics *metrics) {
  int64_t lines = 0, before = -1;
  require(metrics->n_columns <= COLUMNS && (metrics->n_columns > 0) == (metrics->lines > 0));
  for (int i = 0; i < metrics->n_columns; i++) {
    const struct column *column = &metrics->columns[i];
    require(column->first > before && column->last >= column->first && column->lines > 0);
    require((column->last == column->first) == (column->lines == 1));
    before = column->last;
    lines += column->lines;
  }
  require(lines == metrics->lines);
}

static void check_series(const struct metrics *metrics, const struct series *series) {
  int64_t count = 0;
  for (int i = 0; i < metrics->n_columns; i++) {
    const struct cell *cell = &series->cells[i];
    require(isfinite(cell->least) && isfinite(cell->most) && cell->least <= cell->most);
    count += cell->count;
  }
  require(count == series->count && count + series->not_finite > 0);
}

static void check_axis(const struct chart_axis *axis) {
  require(axis->least < axis->most && axis->n_ticks <= MOST_TICKS);
  for (int i = 0; i < axis->n_ticks; i++) require(axis->ticks[i].at >= 0 && axis->ticks[i].at <= 1);
}

/* Numbers of a path are within the square. */
static void check_paths(const char *paths) {
  for (const char *at = paths; (at = strstr(at, " d=\"")) != NULL;) {
    for (at += 4; *at != '"';) {
      char *end;
      const double number = strtod(at, &end);
      require(end == at || (number >= -1e-3 && number <= 1000.001));
      at = end == at ? at + 1 : end;
    }
  }
}

static bool wants_all(const char *name) {
  (void)name;
  return true;
}

static void check_data(struct arena *arena, const struct metrics *metrics) {
  struct text out = text_in(arena);
  text_puts(&out, "{");
  data_metrics(&out, metrics, wants_all);
  text_puts(&out, "}");
  require(strpbrk(out.bytes, "<>&") == NULL);
  json_t *root = json_loadb(out.bytes, out.length, 0, NULL);
  require(json_array_size(json_object_get(root, "last")) == (size_t)metrics->n_columns);
  json_decref(root);
}

static void check_heat(struct arena *arena, const struct metrics *metrics) {
  const struct heat *heat = heat_of(arena, metrics, "");
  require((heat != NULL) == (metrics->n_series > 0) || metrics->n_series > HEAT_ROWS);
  if (heat == NULL) return;
  require(heat->n_rows > 0 && heat->n_rows <= HEAT_ROWS && heat->n_columns > 0 && heat->n_columns <= HEAT_COLUMNS);
  require(heat->least > 0 && heat->least <= heat->most);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char path[64];
  struct metrics metrics;
  struct arena *arena = arena_new();
  FILE *file = tmpfile();
  if (file == NULL || fwrite(bytes, 1, size, file) != size || fflush(file) != 0) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
  require(metrics_read(arena, path, &metrics));
  fclose(file);
  check_columns(&metrics);
  struct chart all = {0};
  for (int i = 0; i < metrics.n_series; i++) {
    check_series(&metrics, &metrics.series[i]);
    const struct chart_line line = {&metrics, &metrics.series[i], i, i % 2 == 1};
    if (metrics.series[i].count > 0) ARENA_PUSH(arena, all, line);
  }
  if (all.count > 0) {
    chart_draw(arena, &all);
    check_axis(&all.x);
    check_axis(&all.y);
    check_paths(all.paths);
  }
  check_data(arena, &metrics);
  check_heat(arena, &metrics);
  arena_free(arena);
  return 0;
}
