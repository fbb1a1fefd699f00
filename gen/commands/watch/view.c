#include "gen/commands/watch/view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/report/bars.h"
#include "runtime/base/digits.h"
#include "runtime/base/terminal.h"

/* Columns of the screen: a name, its newest number, its curve, the range of the curve. */
enum { NAME = 15, NUMBER = 11, RANGE = 24, LEAST_CURVE = 8, MOST_ROWS_OF_LOSS = 12, BAR = 24 };

/* What is filled so far. */
struct view {
  struct arena *arena;
  const struct watched *run;
  int columns, rows;
  bool blocks;
  struct text out;
  int used; /* rows */
};

/* What was read must not command the terminal: no control characters, those of U+0080 to U+009F among them. */
static const char *harmless(struct arena *arena, const char *line) {
  char *copy = arena_string(arena, line);
  for (unsigned char *c = (unsigned char *)copy; *c != '\0'; c++) {
    if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) c[0] = c[1] = '?';
    if (*c < ' ' || *c == 127) *c = '?';
  }
  return copy;
}

/* Adds a line, cut off where the screen ends. */
static void add_line(struct view *view, const char *line) {
  if (view->used == view->rows) return;
  line = harmless(view->arena, line);
  int bytes = (int)strlen(line);
  while (bytes > 0 && rt_columns_of(line, bytes) > view->columns) bytes--;
  text_printf(&view->out, "%.*s\n", bytes, line);
  view->used++;
}

/* ---- The head ---- */

static double recorded(const struct watched *run, const char *key) {
  const json_t *value = json_object_get(run->record, key);
  return json_is_number(value) ? json_number_value(value) : 0;
}

static const char *words_of(const struct watched *run, const char *key) {
  const char *text = json_string_value(json_object_get(run->record, key));
  return text != NULL ? text : "";
}

static int64_t newest_step(const struct metrics *metrics) {
  return metrics->n_columns > 0 ? metrics->columns[metrics->n_columns - 1].last : 0;
}

static const char *duration(struct arena *arena, double seconds) {
  char text[32];
  rt_duration(text, sizeof text, seconds > 0 ? seconds : 0);
  return arena_string(arena, text);
}

/* At the pace of the newest line; below 0: unknown. */
static double seconds_left(const struct watched *run) {
  const struct series *ms = metrics_find(&run->metrics, "step_ms");
  const double steps = recorded(run, "steps") - (double)newest_step(&run->metrics);
  return ms != NULL && ms->count > 0 && recorded(run, "steps") > 0 ? 1e-3 * ms->last * steps - run->age : -1;
}

static const char *state_text(struct arena *arena, const struct watched *run) {
  const double left = seconds_left(run);
  switch (run->state) {
  case RUN_WAITS:
    return "waits for the first line";
  case RUN_GOES:
    return arena_printf(arena, "runs%s%s%s, newest line %s ago", left >= 0 ? ", " : "",
                        left >= 0 ? duration(arena, left) : "", left >= 0 ? " left" : "", duration(arena, run->age));
  case RUN_FINISHED:
    return "finished";
  default:
    return "ended before its last step";
  }
}

static const char *progress_text(struct arena *arena, const struct watched *run) {
  const int64_t at = newest_step(&run->metrics), steps = (int64_t)recorded(run, "steps");
  char bar[BAR + 1];
  if (steps <= 0) return arena_printf(arena, "step %s", count_text(arena, at));
  const int full = (int)(BAR * (at < steps ? (double)at / (double)steps : 1));
  memset(bar, '.', BAR);
  memset(bar, '=', (size_t)full);
  bar[BAR] = '\0';
  return arena_printf(arena, "[%s] step %s of %s", bar, count_text(arena, at), count_text(arena, steps));
}

static void add_head(struct view *view) {
  const struct watched *run = view->run;
  struct arena *arena = view->arena;
  const char *model = words_of(run, "model"), *summary = words_of(run, "summary");
  const int64_t taken = (int64_t)(recorded(run, "units_per_step") * (double)newest_step(&run->metrics));
  struct text second = text_in(arena);
  add_line(view, arena_printf(arena, "%s: %s%s", run->folder, run->is_another ? "another run began; " : "",
                              state_text(arena, run)));
  if (model[0] != '\0') add_line(view, arena_printf(arena, "%s %s", model, summary));
  if (run->metrics.n_columns == 0) return;
  text_puts(&second, progress_text(arena, run));
  if (taken > 0) text_printf(&second, ", %s %ss", count_text(arena, taken), words_of(run, "unit"));
  add_line(view, text_string(&second));
}

/* ---- Curves ---- */

static const char *number_text(struct arena *arena, double number) {
  const double size = fabs(number);
  if (size >= 1e4 && size < 1e12) return count_text(arena, llround(number));
  return arena_printf(arena, size == 0 || (size >= 1e-3 && size < 1e4) ? "%.4f" : "%.3e", number);
}

static int curve_columns(const struct view *view) {
  const int left = view->columns - NAME - NUMBER - RANGE - 3;
  return left < LEAST_CURVE ? LEAST_CURVE : left;
}

/* A series in `rows` rows: its name and its newest number are in the last one, the range of the curve's means is on its
 * right. */
static void add_curve(struct view *view, const char *label, const struct series *series, int rows) {
  struct arena *arena = view->arena;
  const struct bars bars = bars_of(arena, &view->run->metrics, series, curve_columns(view));
  const bool known = bars.least <= bars.most;
  for (int row = 0; row < rows; row++) {
    struct text line = text_in(arena);
    const bool last = row == rows - 1;
    text_printf(&line, "%-*.*s %*s ", NAME, NAME, last ? label : "", NUMBER,
                last && series->count > 0 ? number_text(arena, series->last) : "");
    bars_row(&line, &bars, row, rows, view->blocks);
    if (known && rows == 1)
      text_printf(&line, " %s to %s", number_text(arena, bars.least), number_text(arena, bars.most));
    else if (known && (row == 0 || last))
      text_printf(&line, " %s", number_text(arena, last ? bars.least : bars.most));
    add_line(view, text_string(&line));
  }
}

/* The series of each line, in the order of the screen. */
static const struct {
  const char *name, *label;
} usual[] = {{"eval_loss", "eval"},
             {"lr", "lr"},
             {"grad_norm", "norm"},
             {"tokens_per_s", NULL},
             {"step_ms", "ms a step"},
             {"input_wait_ms", "ms of input"},
             {"peak_memory_mib", "memory MiB"},
             {"loss_scale", "loss scale"},
             {"skipped", "skipped"}};
enum { USUAL = sizeof usual / sizeof *usual };

static const char *label_of(const struct view *view, int which) {
  if (usual[which].label != NULL) return usual[which].label;
  return strcmp(words_of(view->run, "unit"), "row") == 0 ? "rows/s" : "tok/s";
}

/* Metrics of an evaluation, and what user code logs: not the norms of each parameter. */
static bool is_other(const char *name) {
  static const char *const apart[] = {"loss", "start_to_first_step_s", "weights_s", "save_stall_ms"};
  for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
    if (strcmp(name, apart[i]) == 0) return false;
  for (int i = 0; i < USUAL; i++)
    if (strcmp(name, usual[i].name) == 0) return false;
  return strchr(name, '/') == NULL;
}

static int count_curves(const struct metrics *metrics) {
  int count = 0;
  for (int i = 0; i < USUAL; i++) count += metrics_find(metrics, usual[i].name) != NULL;
  for (int i = 0; i < metrics->n_series; i++) count += is_other(metrics->series[i].name);
  return count;
}

static void add_curves(struct view *view) {
  const struct metrics *metrics = &view->run->metrics;
  const struct series *loss = metrics_find(metrics, "loss");
  int rows = view->rows - view->used - count_curves(metrics) - 2;
  rows = rows < 1 ? 1 : rows > MOST_ROWS_OF_LOSS ? MOST_ROWS_OF_LOSS : rows;
  add_line(view, "");
  if (loss != NULL) add_curve(view, "loss", loss, rows);
  for (int i = 0; i < USUAL; i++) {
    const struct series *series = metrics_find(metrics, usual[i].name);
    if (series != NULL) add_curve(view, label_of(view, i), series, 1);
    for (int k = 0; i == 0 && k < metrics->n_series; k++) {
      const char *name = metrics->series[k].name;
      if (is_other(name)) add_curve(view, strncmp(name, "eval_", 5) == 0 ? name + 5 : name, &metrics->series[k], 1);
    }
  }
}

const char *view_text(struct arena *arena, const struct watched *run, int columns, int rows, bool blocks) {
  struct view view = {
      .arena = arena, .run = run, .columns = columns, .rows = rows, .blocks = blocks, .out = text_in(arena)};
  add_head(&view);
  if (run->metrics.n_columns > 0) add_curves(&view);
  return text_string(&view.out);
}
