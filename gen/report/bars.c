#include "gen/report/bars.h"

#include <math.h>

enum { EIGHTHS = 8 };

static int part_at(const struct metrics *metrics, int at, int parts) {
  const int64_t first = metrics->columns[0].first, last = metrics->columns[metrics->n_columns - 1].last;
  const double share = last > first ? (double)(metrics->columns[at].last - first) / (double)(last - first) : 0;
  const int part = (int)(share * parts);
  return part < parts ? part : parts - 1;
}

struct bars bars_of(struct arena *arena, const struct metrics *metrics, const struct series *series, int columns) {
  const int parts = columns < metrics->n_columns ? columns : metrics->n_columns;
  struct bars bars = {.means = arena_alloc(arena, ((size_t)parts + 1) * sizeof *bars.means),
                      .parts = parts,
                      .wide = parts > 0 ? columns / parts : 1,
                      .least = INFINITY,
                      .most = -INFINITY};
  int64_t *counts = arena_alloc(arena, ((size_t)parts + 1) * sizeof *counts);
  for (int i = 0; i < parts; i++) bars.means[i] = 0, counts[i] = 0;
  for (int i = 0; i < metrics->n_columns; i++) {
    const int part = part_at(metrics, i, parts);
    bars.means[part] += series->cells[i].sum;
    counts[part] += series->cells[i].count;
  }
  for (int i = 0; i < parts; i++) {
    bars.means[i] = counts[i] > 0 ? bars.means[i] / (double)counts[i] : NAN;
    if (bars.means[i] < bars.least) bars.least = bars.means[i];
    if (bars.means[i] > bars.most) bars.most = bars.means[i];
  }
  return bars;
}

/* Eighths of a row that a mean fills: of the least one 1, of the largest one all of all rows. */
static int eighths_of(const struct bars *bars, double mean, int rows) {
  static const double rounding = 1e-12; /* of sums of equal numbers */
  const double range = bars->most - bars->least, size = fabs(bars->most) + fabs(bars->least);
  const double part = range > rounding * size ? (mean - bars->least) / range : 0.5;
  return 1 + (int)lround(part * (EIGHTHS * rows - 1));
}

void bars_row(struct text *out, const struct bars *bars, int row, int rows, bool blocks) {
  static const char *const glyphs[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  for (int i = 0; i < bars->parts; i++) {
    int filled = isnan(bars->means[i]) ? 0 : eighths_of(bars, bars->means[i], rows) - EIGHTHS * (rows - 1 - row);
    filled = filled < 0 ? 0 : filled > EIGHTHS ? EIGHTHS : filled;
    const char *glyph = blocks ? glyphs[filled] : filled == 0 ? " " : 2 * filled < EIGHTHS ? "." : "#";
    for (int k = 0; k < bars->wide; k++) text_puts(out, glyph);
  }
}
