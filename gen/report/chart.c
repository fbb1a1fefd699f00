#include "gen/report/chart.h"

#include <math.h>

/* Whether columns without a number are gaps: a series of every line has one where a number is not finite. */
static bool has_gaps(const struct chart_line *line) {
  return line->series->count + line->series->not_finite >= line->metrics->lines;
}

static double mean_of(const struct cell *cell) {
  return cell->sum / (double)cell->count;
}

/* Numbers beyond it are drawn at the edge, so that no difference of two overflows. */
static const double largest = 1e300;

static void find_axes(struct chart *chart) {
  double least = INFINITY, most = -INFINITY, first = INFINITY, last = 0;
  for (int i = 0; i < chart->count; i++) {
    const struct chart_line *line = &chart->items[i];
    for (int k = 0; k < line->metrics->n_columns; k++) {
      const struct cell *cell = &line->series->cells[k];
      if (cell->count == 0) continue;
      least = fmin(least, cell->least);
      most = fmax(most, cell->most);
      first = fmin(first, (double)line->metrics->columns[k].last);
      last = fmax(last, (double)line->metrics->columns[k].last);
    }
  }
  least = fmin(largest, fmax(least, -largest));
  most = fmin(largest, fmax(most, -largest));
  const double margin = 0.04 * (most - least);
  chart->x = axis_of(first > last / 2 ? first : 0, last, 5, false);
  chart->y = axis_of(least >= 0 && least < margin ? 0 : least - margin, most + margin, 5, false);
}

/* What is written of a line, point after point. */
struct pen {
  struct text *out;
  const struct chart *chart;
  const char *next; /* "M" or "L" */
};

static void put(struct pen *pen, double x, double y) {
  const double height = fmin(1, fmax(0, axis_at(&pen->chart->y, y)));
  text_printf(pen->out, "%s%.6g %.6g", pen->next, 1000 * axis_at(&pen->chart->x, x), 1000 * (1 - height));
  pen->next = "L";
}

/* The band of the columns from `from` to before `to`. */
static void put_band(struct pen *pen, const struct chart_line *line, int from, int to) {
  const struct cell *cells = line->series->cells;
  const struct column *columns = line->metrics->columns;
  pen->next = "M";
  for (int k = from; k < to; k++)
    if (cells[k].count > 0) put(pen, (double)columns[k].last, cells[k].most);
  for (int k = to - 1; k >= from; k--)
    if (cells[k].count > 0) put(pen, (double)columns[k].last, cells[k].least);
  text_puts(pen->out, "Z");
}

static bool is_wide(const struct chart_line *line) {
  for (int k = 0; k < line->metrics->n_columns; k++)
    if (line->series->cells[k].count > 1) return true;
  return false;
}

static void draw_band(struct pen *pen, const struct chart_line *line) {
  const int count = line->metrics->n_columns;
  text_printf(pen->out, "<path class=\"band r%d\" d=\"", line->run % 8);
  for (int from = 0; from < count;) {
    int to = from;
    while (to < count && (line->series->cells[to].count > 0 || !has_gaps(line))) to++;
    if (to > from) put_band(pen, line, from, to);
    from = to + 1;
  }
  text_puts(pen->out, "\"/>\n");
}

static void draw_line(struct pen *pen, const struct chart_line *line) {
  text_printf(pen->out, "<path class=\"line r%d%s%s\" d=\"", line->run % 8, line->run >= 8 ? " again" : "",
              line->second ? " second" : "");
  pen->next = "M";
  for (int k = 0; k < line->metrics->n_columns; k++) {
    const struct cell *cell = &line->series->cells[k];
    if (cell->count > 0)
      put(pen, (double)line->metrics->columns[k].last, mean_of(cell));
    else if (has_gaps(line))
      pen->next = "M";
  }
  text_puts(pen->out, "\"/>\n");
}

/* Lines of no length with round ends, which stay round when the picture is stretched. */
static void draw_dots(struct pen *pen, const struct chart_line *line) {
  text_printf(pen->out, "<path class=\"dots r%d\" d=\"", line->run % 8);
  for (int k = 0; k < line->metrics->n_columns; k++) {
    const struct cell *cell = &line->series->cells[k];
    if (cell->count == 0) continue;
    pen->next = "M";
    put(pen, (double)line->metrics->columns[k].last, mean_of(cell));
    text_puts(pen->out, "h0");
  }
  text_puts(pen->out, "\"/>\n");
}

void chart_draw(struct arena *arena, struct chart *chart) {
  struct text out = text_in(arena);
  struct pen pen = {.out = &out, .chart = chart};
  find_axes(chart);
  for (int i = 0; i < chart->count; i++)
    if (is_wide(&chart->items[i])) draw_band(&pen, &chart->items[i]);
  for (int i = 0; i < chart->count; i++) {
    const struct chart_line *line = &chart->items[i];
    draw_line(&pen, line);
    if (line->series->count == 1 || (line->second && line->series->count <= 60)) draw_dots(&pen, line);
  }
  chart->paths = text_string(&out);
}
