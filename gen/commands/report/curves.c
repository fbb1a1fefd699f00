/* The curves of a report, and their numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/commands/report/limit.h"
#include "gen/commands/report/page.h"
#include "gen/report/chart.h"
#include "gen/report/data.h"
#include "gen/report/heat.h"

#define NORMS "grad_norm/"

enum { MOST_CHARTS = 48, ROWS = 20 };

/* ---- Which charts there are ---- */

struct kind {
  const char *series, *second; /* second: drawn with the first one; NULL: none is */
  const char *title, *unit;
};

static const struct kind kinds[] = {
    {"loss", "eval_loss", "Loss", ""},
    {"lr", NULL, "Learning rate", ""},
    {"grad_norm", NULL, "Gradient norm", "of the whole gradient, before clipping"},
    {"tokens_per_s", NULL, "Throughput", "tokens or rows a second"},
    {"limit_share", NULL, "Share of the limit", "% of the machine's matrix products a second"},
    {"step_ms", NULL, "Time of a step", "ms"},
    {"input_wait_ms", NULL, "Waiting for batches", "ms of a step"},
    {"peak_memory_mib", NULL, "Memory of the host, peak", "MiB"},
    {"loss_scale", NULL, "Loss scale", ""},
    {"noise_scale", NULL, "Gradient noise scale", "samples"},
    {"save_stall_ms", NULL, "Waiting for saves", "ms since the line before"},
    {"skipped", NULL, "Steps without an update", ""},
};

/* Not curves: numbers of the first line alone, and what has a picture of its own. */
static bool is_curve(const char *name) {
  return strcmp(name, "start_to_first_step_s") != 0 && strcmp(name, "weights_s") != 0 &&
         strncmp(name, NORMS, strlen(NORMS)) != 0;
}

static const struct kind *kind_of(const char *name) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].series, name) == 0) return &kinds[i];
  return NULL;
}

struct page {
  struct arena *arena;
  const struct report_run *runs;
  int n_runs;
  struct {
    struct kind *items;
    int count, capacity;
  } kinds; /* the charts, in their order */
  int left_out;
};

static void add_line(struct page *page, struct chart *chart, int run, const char *name, bool second) {
  const struct metrics *metrics = &page->runs[run].metrics;
  const struct series *series = name != NULL ? metrics_find(metrics, name) : NULL;
  if (series == NULL || series->count == 0) return;
  const struct chart_line line = {metrics, series, run, second};
  ARENA_PUSH(page->arena, *chart, line);
}

static struct chart chart_of(struct page *page, const struct kind *kind) {
  struct chart chart = {0};
  for (int i = 0; i < page->n_runs; i++) add_line(page, &chart, i, kind->series, false);
  for (int i = 0; i < page->n_runs; i++) add_line(page, &chart, i, kind->second, true);
  return chart;
}

static void add_kind(struct page *page, struct kind kind) {
  for (int i = 0; i < page->kinds.count; i++) {
    const struct kind *other = &page->kinds.items[i];
    if (strcmp(other->series, kind.series) == 0) return;
    if (other->second != NULL && strcmp(other->second, kind.series) == 0) return;
  }
  if (chart_of(page, &kind).count == 0) return;
  if (page->kinds.count == MOST_CHARTS)
    page->left_out++;
  else
    ARENA_PUSH(page->arena, page->kinds, kind);
}

/* The loss, other evaluations, then what is known, then all else. */
static void find_kinds(struct page *page) {
  add_kind(page, kinds[0]);
  for (int evaluations = 1; evaluations >= 0; evaluations--) {
    for (int i = 0; i < page->n_runs; i++) {
      const struct metrics *metrics = &page->runs[i].metrics;
      for (int k = 0; k < metrics->n_series; k++) {
        const char *name = metrics->series[k].name;
        const bool is_evaluation = strncmp(name, "eval_", 5) == 0;
        if (is_curve(name) && kind_of(name) == NULL && is_evaluation == (evaluations == 1))
          add_kind(page, (struct kind){name, NULL, name, ""});
      }
    }
    for (size_t k = 1; evaluations == 1 && k < sizeof kinds / sizeof *kinds; k++) add_kind(page, kinds[k]);
  }
}

/* ---- A chart ---- */

static const char *number_text(struct arena *arena, double number) {
  if (!isfinite(number)) return "not finite";
  if (fabs(number) >= 1e4 && fabs(number) < 1e15) return count_text(arena, (int64_t)round(number));
  return arena_printf(arena, "%.4g", number);
}

static struct jinja_value ticks_of(struct arena *arena, const struct chart_axis *axis) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < axis->n_ticks; i++) {
    struct jinja_value tick = jinja_map(arena);
    jinja_set(arena, tick, "at", jinja_string(arena, arena_printf(arena, "%.3f", 100 * axis->ticks[i].at)));
    jinja_set(arena, tick, "line", jinja_string(arena, arena_printf(arena, "%.6g", 1000 * axis->ticks[i].at)));
    jinja_set(arena, tick, "label", jinja_string(arena, axis->ticks[i].label));
    jinja_push(arena, list, tick);
  }
  return list;
}

/* What a picture shows, for those who do not see it. */
static const char *words_of(struct page *page, const struct kind *kind, const struct chart *chart) {
  struct text words = text_in(page->arena);
  text_printf(&words, "%s over steps.", kind->title);
  for (int i = 0; i < chart->count && i < 12; i++) {
    const struct chart_line *line = &chart->items[i];
    const struct series *series = line->series;
    double least = INFINITY, most = -INFINITY;
    for (int k = 0; k < line->metrics->n_columns; k++) {
      if (series->cells[k].count == 0) continue;
      least = fmin(least, series->cells[k].least);
      most = fmax(most, series->cells[k].most);
    }
    text_printf(&words, " %s%s%s: between %s and %s, %s at step %s.",
                page->n_runs > 1 ? page->runs[line->run].name : "", page->n_runs > 1 ? ", " : "", series->name,
                number_text(page->arena, least), number_text(page->arena, most), number_text(page->arena, series->last),
                count_text(page->arena, series->last_step));
  }
  return text_string(&words);
}

static struct jinja_value chart_value(struct page *page, const struct kind *kind) {
  struct arena *arena = page->arena;
  struct jinja_value value = jinja_map(arena);
  struct chart chart = chart_of(page, kind);
  bool second = false;
  for (int i = 0; i < chart.count; i++) second |= chart.items[i].second;
  chart_draw(arena, &chart);
  jinja_set(arena, value, "title", page_text(arena, kind->title));
  jinja_set(arena, value, "unit", jinja_string(arena, kind->unit));
  jinja_set(arena, value, "second", jinja_bool(second));
  jinja_set(arena, value, "words", page_text(arena, words_of(page, kind, &chart)));
  jinja_set(arena, value, "paths", jinja_string(arena, chart.paths));
  jinja_set(arena, value, "x", ticks_of(arena, &chart.x));
  jinja_set(arena, value, "y", ticks_of(arena, &chart.y));
  return value;
}

/* ---- The runs in a table ---- */

static const struct series *own_series(const struct report_run *run, const char *name) {
  const struct series *series = metrics_find(&run->metrics, name);
  return series != NULL && series->count > 0 ? series : NULL;
}

static void set_last(struct arena *arena, struct jinja_value value, const struct report_run *run, const char *name) {
  const struct series *series = own_series(run, name);
  jinja_set(arena, value, name, jinja_string(arena, series != NULL ? number_text(arena, series->last) : ""));
}

/* The least number, and where. Of columns of several lines, the column's last step. */
static const char *least_text(struct arena *arena, const struct report_run *run, const char *name) {
  const struct series *series = own_series(run, name);
  int at = -1;
  for (int k = 0; series != NULL && k < run->metrics.n_columns; k++)
    if (series->cells[k].count > 0 && (at < 0 || series->cells[k].least < series->cells[at].least)) at = k;
  if (at < 0) return "";
  return arena_printf(arena, "%s at step %s", number_text(arena, series->cells[at].least),
                      count_text(arena, run->metrics.columns[at].last));
}

/* 0: there is no number. */
static double mean_of(const struct report_run *run, const char *name) {
  const struct series *series = own_series(run, name);
  double sum = 0;
  for (int k = 0; series != NULL && k < run->metrics.n_columns; k++) sum += series->cells[k].sum;
  return series != NULL ? sum / (double)series->count : 0;
}

static const char *mean_text(struct arena *arena, const struct report_run *run, const char *name) {
  return own_series(run, name) != NULL ? number_text(arena, mean_of(run, name)) : "";
}

/* "12.3 GFLOP/s, 45 % of the limit": of the matrix products of a rank, in the mean. */
static const char *products_text(struct arena *arena, const struct report_run *run) {
  const double units = report_number(run->record, "units_per_step", 0), mean = mean_of(run, "tokens_per_s");
  if (report_products(run) <= 0 || units <= 0 || mean <= 0) return "";
  const char *rate = flops_text(arena, report_products(run) * mean / units);
  if (own_series(run, "limit_share") == NULL) return arena_printf(arena, "%s/s", rate);
  return arena_printf(arena, "%s/s, %.3g %% of the limit", rate, mean_of(run, "limit_share"));
}

static const char *time_text(struct arena *arena, double seconds) {
  if (seconds < 100) return arena_printf(arena, "%.3g s", seconds);
  if (seconds < 6000) return arena_printf(arena, "%.1f min", seconds / 60);
  return arena_printf(arena, "%.1f h", seconds / 3600);
}

static struct jinja_value run_value(struct arena *arena, const struct report_run *run, int index) {
  struct jinja_value value = jinja_map(arena), notes = jinja_list(arena);
  const struct metrics *metrics = &run->metrics;
  const struct column *end = &metrics->columns[metrics->n_columns - 1];
  const double planned = report_number(run->record, "steps", 0);
  jinja_set(arena, value, "index", jinja_int(index));
  jinja_set(arena, value, "name", page_text(arena, run->name));
  jinja_set(arena, value, "steps", jinja_string(arena, count_text(arena, end->last)));
  jinja_set(
      arena, value, "planned",
      jinja_string(arena, planned > (double)end->last && planned < 1e15 ? count_text(arena, (int64_t)planned) : ""));
  set_last(arena, value, run, "loss");
  jinja_set(arena, value, "eval", jinja_string(arena, least_text(arena, run, "eval_loss")));
  jinja_set(arena, value, "rate", jinja_string(arena, mean_text(arena, run, "tokens_per_s")));
  jinja_set(arena, value, "products", jinja_string(arena, products_text(arena, run)));
  jinja_set(arena, value, "ms", jinja_string(arena, mean_text(arena, run, "step_ms")));
  set_last(arena, value, run, "peak_memory_mib");
  jinja_set(arena, value, "time", jinja_string(arena, metrics->has_seconds ? time_text(arena, end->seconds) : ""));
  for (int i = 0; i < run->notes.count; i++) jinja_push(arena, notes, page_text(arena, run->notes.items[i]));
  jinja_set(arena, value, "notes", notes);
  return value;
}

/* ---- Some of the numbers in a table ---- */

static struct jinja_value row_of(struct arena *arena, const struct report_run *run, int column, const int *series,
                                 int count) {
  struct jinja_value row = jinja_list(arena);
  const struct column *of = &run->metrics.columns[column];
  const char *first = count_text(arena, of->first), *last = count_text(arena, of->last);
  jinja_push(arena, row,
             jinja_string(arena, of->first == of->last ? last : arena_printf(arena, "%s to %s", first, last)));
  for (int i = 0; i < count; i++) {
    const struct cell *cell = &run->metrics.series[series[i]].cells[column];
    jinja_push(arena, row,
               jinja_string(arena, cell->count > 0 ? number_text(arena, cell->sum / (double)cell->count) : ""));
  }
  return row;
}

/* At most ROWS columns, as far from each other, and those with an evaluation that is the last of them. */
static struct jinja_value numbers_of(struct arena *arena, const struct report_run *run) {
  enum { MOST_NAMES = 12 };
  const struct metrics *metrics = &run->metrics;
  struct jinja_value value = jinja_map(arena), names = jinja_list(arena), rows = jinja_list(arena);
  int series[MOST_NAMES], count = 0;
  for (int i = 0; i < metrics->n_series && count < MOST_NAMES; i++) {
    if (!is_curve(metrics->series[i].name) || metrics->series[i].count == 0) continue;
    jinja_push(arena, names, page_text(arena, metrics->series[i].name));
    series[count++] = i;
  }
  for (int i = 0, shown = -1; i < ROWS; i++) {
    const int column = (int)((int64_t)(i + 1) * metrics->n_columns / ROWS) - 1;
    if (column > shown) jinja_push(arena, rows, row_of(arena, run, column, series, count));
    if (column > shown) shown = column;
  }
  jinja_set(arena, value, "name", page_text(arena, run->name));
  jinja_set(arena, value, "names", names);
  jinja_set(arena, value, "rows", rows);
  return value;
}

/* ---- The data ---- */

/* "norms": {"last": [...], "rows": {NAME: [...]}} */
static void add_norms(struct text *out, const struct heat *heat) {
  text_puts(out, ",\"norms\":{\"last\":[");
  for (int k = 0; k < heat->n_columns; k++) text_printf(out, "%s%lld", k > 0 ? "," : "", (long long)heat->last[k]);
  text_puts(out, "],\"rows\":{");
  for (int i = 0; i < heat->n_rows; i++) {
    if (i > 0) text_puts(out, ",");
    data_text(out, heat->rows[i].name);
    text_puts(out, ":[");
    for (int k = 0; k < heat->n_columns; k++) {
      if (k > 0) text_puts(out, ",");
      data_number(out, heat->rows[i].norms[k] < 0 ? NAN : heat->rows[i].norms[k]);
    }
    text_puts(out, "]");
  }
  text_puts(out, "}}");
}

static const char *data_of(struct page *page) {
  struct text out = text_in(page->arena);
  text_puts(&out, "{\"runs\":[");
  for (int i = 0; i < page->n_runs; i++) {
    const struct report_run *run = &page->runs[i];
    text_puts(&out, i > 0 ? ",\n{\"name\":" : "\n{\"name\":");
    data_text(&out, run->name);
    text_puts(&out, ",\"unit\":");
    const char *unit = json_string_value(json_object_get(run->record, "unit"));
    data_text(&out, unit != NULL ? unit : "");
    text_puts(&out, ",\"units_per_step\":");
    data_number(&out, report_number(run->record, "units_per_step", NAN));
    text_puts(&out, ",");
    data_metrics(&out, &run->metrics, is_curve);
    const struct heat *heat = heat_of(page->arena, &run->metrics, NORMS);
    if (heat != NULL) add_norms(&out, heat);
    text_puts(&out, "}");
  }
  text_puts(&out, "],\n\"charts\":[");
  for (int i = 0; i < page->kinds.count; i++) {
    const struct kind *kind = &page->kinds.items[i];
    text_puts(&out, i > 0 ? ",[" : "[");
    data_text(&out, kind->series);
    if (kind->second != NULL) text_puts(&out, ",");
    if (kind->second != NULL) data_text(&out, kind->second);
    text_puts(&out, "]");
  }
  text_puts(&out, "]}");
  return text_string(&out);
}

/* ---- Norms of parameters' gradients ---- */

static const char *norm_text(struct arena *arena, double norm) {
  char label[TICK_LABEL];
  axis_label(label, norm, norm / 100, norm);
  return arena_string(arena, label);
}

static struct jinja_value heat_value(struct arena *arena, const struct report_run *run, const struct heat *heat) {
  struct jinja_value value = jinja_map(arena), rows = jinja_list(arena);
  for (int i = 0; i < heat->n_rows; i++) {
    struct jinja_value row = jinja_map(arena);
    const double last = heat->rows[i].norms[heat->n_columns - 1];
    jinja_set(arena, row, "name", page_text(arena, heat->rows[i].name));
    jinja_set(arena, row, "series", jinja_int(heat->rows[i].series));
    jinja_set(arena, row, "last", jinja_string(arena, last >= 0 ? norm_text(arena, last) : ""));
    jinja_push(arena, rows, row);
  }
  jinja_set(arena, value, "run", page_text(arena, run->name));
  jinja_set(arena, value, "rows", rows);
  jinja_set(arena, value, "columns", jinja_int(heat->n_columns));
  jinja_set(arena, value, "series", jinja_int(heat->n_series));
  jinja_set(arena, value, "least", jinja_string(arena, norm_text(arena, heat->least)));
  jinja_set(arena, value, "most", jinja_string(arena, norm_text(arena, heat->most)));
  jinja_set(arena, value, "first", jinja_string(arena, count_text(arena, run->metrics.columns[0].first)));
  jinja_set(arena, value, "last", jinja_string(arena, count_text(arena, heat->last[heat->n_columns - 1])));
  jinja_set(arena, value, "paths", jinja_string(arena, heat->paths));
  return value;
}

void page_add_norms(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < count; i++) {
    const struct heat *heat = heat_of(arena, &runs[i].metrics, NORMS);
    if (heat != NULL) jinja_push(arena, list, heat_value(arena, &runs[i], heat));
  }
  jinja_set(arena, page, "norms", list);
}

/* ---- All of it ---- */

void page_add_curves(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count) {
  struct page of = {.arena = arena, .runs = runs, .n_runs = count};
  struct jinja_value list = jinja_list(arena), charts = jinja_list(arena), numbers = jinja_list(arena);
  find_kinds(&of);
  for (int i = 0; i < count; i++) jinja_push(arena, list, run_value(arena, &runs[i], i));
  for (int i = 0; i < of.kinds.count; i++) jinja_push(arena, charts, chart_value(&of, &of.kinds.items[i]));
  for (int i = 0; i < count; i++) jinja_push(arena, numbers, numbers_of(arena, &runs[i]));
  jinja_set(arena, page, "runs", list);
  jinja_set(arena, page, "charts", charts);
  jinja_set(arena, page, "left_out", jinja_int(of.left_out));
  jinja_set(arena, page, "numbers", numbers);
  jinja_set(arena, page, "data", jinja_string(arena, data_of(&of)));
}
