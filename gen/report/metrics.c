#include "gen/report/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "gen/base/hash.h"
#include "gen/base/text.h"
#include "gen/report/lines.h"

enum { TABLE = 2 * MOST_SERIES, MOST_NAME = 300 };
static const int64_t most_step = (int64_t)1 << 53;

/* A number of the line that is read. */
struct value {
  int series;
  double number;
};

/* The reading of a file, from its last line to its first. Columns and cells are in that order until the end. */
struct reading {
  struct arena *arena, *scratch;
  struct metrics *metrics;
  int table[TABLE];     /* of names: series + 1 */
  struct value *values; /* of a line */
  int n_values;
  int depth, series; /* the series of the value that comes next; -1: none takes it */
  bool is_step;
  double step;       /* of a line; -1: it has none */
  int64_t last_step; /* of the file */
  int64_t next_step; /* of the line that follows in the file and counts; -1: none does */
  double next_ms;    /* of its steps */
  double seconds;    /* from the last line back to the one that was read, below 0 */
  double origin;     /* what that would be before the first step */
  bool is_folded;
};

/* ---- Names ---- */

static int *slot_of(struct reading *of, const char *name, size_t length) {
  size_t at = (size_t)hash_bytes(name, length) % TABLE;
  for (; of->table[at] != 0; at = (at + 1) % TABLE) {
    const char *other = of->metrics->series[of->table[at] - 1].name;
    if (strncmp(other, name, length) == 0 && other[length] == '\0') break;
  }
  return &of->table[at];
}

/* -1: there are too many. */
static int series_of(struct reading *of, const char *name, size_t length) {
  struct metrics *metrics = of->metrics;
  const int next = of->n_values > 0 ? of->values[of->n_values - 1].series + 1 : 0; /* as in the line before */
  if (next < metrics->n_series && strncmp(metrics->series[next].name, name, length) == 0 &&
      metrics->series[next].name[length] == '\0')
    return next;
  int *slot = slot_of(of, name, length);
  if (*slot != 0) return *slot - 1;
  if (metrics->n_series == MOST_SERIES) return -1;
  metrics->series[metrics->n_series] = (struct series){.name = arena_copy(of->arena, name, length),
                                                       .cells = arena_alloc(of->arena, COLUMNS * sizeof(struct cell))};
  *slot = ++metrics->n_series;
  return *slot - 1;
}

/* ---- What yajl calls: 0 ends the reading ---- */

static void take(struct reading *of, double number) {
  if (of->depth == 1 && of->is_step) of->step = number;
  if (of->depth == 1 && of->series >= 0 && of->n_values < MOST_SERIES)
    of->values[of->n_values++] = (struct value){of->series, number};
  of->series = -1;
  of->is_step = false;
}

static int take_null(void *context) {
  struct reading *of = context;
  const bool is_step = of->is_step;
  take(of, NAN);
  return of->depth > 0 && !is_step;
}

static int skip(struct reading *of) {
  of->series = -1;
  of->is_step = false;
  return of->depth > 0;
}

static int take_boolean(void *context, int value) {
  (void)value;
  return skip(context);
}

static int take_string(void *context, const unsigned char *text, size_t length) {
  (void)text;
  (void)length;
  return skip(context);
}

static int take_number(void *context, const char *text, size_t length) {
  char copy[512];
  if (((struct reading *)context)->depth != 1) return skip(context);
  if (length >= sizeof copy) return 0;
  memcpy(copy, text, length);
  copy[length] = '\0';
  take(context, strtod(copy, NULL));
  return 1;
}

static int enter(void *context) {
  struct reading *of = context;
  of->series = -1;
  of->is_step = false;
  of->depth++;
  return 1;
}

static int enter_list(void *context) {
  return ((struct reading *)context)->depth > 0 && enter(context);
}

static int leave(void *context) {
  ((struct reading *)context)->depth--;
  return 1;
}

static int take_key(void *context, const unsigned char *text, size_t length) {
  struct reading *of = context;
  const char *name = (const char *)text;
  if (of->depth != 1) return 1;
  of->is_step = length == 4 && memcmp(name, "step", 4) == 0;
  of->series = -1;
  if (of->is_step || length == 0 || length > MOST_NAME || memchr(name, '\0', length) != NULL) return 1;
  of->series = series_of(of, name, length);
  if (of->series < 0) of->metrics->left_out++;
  return 1;
}

static bool parse(struct reading *of, const char *text, size_t length) {
  static const yajl_callbacks callbacks = {.yajl_null = take_null,
                                           .yajl_boolean = take_boolean,
                                           .yajl_number = take_number,
                                           .yajl_string = take_string,
                                           .yajl_start_map = enter,
                                           .yajl_map_key = take_key,
                                           .yajl_end_map = leave,
                                           .yajl_start_array = enter_list,
                                           .yajl_end_array = leave};
  of->n_values = of->depth = 0;
  of->step = -1;
  yajl_handle handle = yajl_alloc(&callbacks, NULL, of);
  bool good = handle != NULL && yajl_parse(handle, (const unsigned char *)text, length) == yajl_status_ok &&
              yajl_complete_parse(handle) == yajl_status_ok;
  if (handle != NULL) yajl_free(handle);
  return good && of->step >= 0 && of->step < (double)most_step && of->step == floor(of->step);
}

/* The length of a word that Python writes for a number that is not finite, at the beginning of a text; 0: none is. */
static size_t word_at(const char *text, size_t length) {
  static const char *const words[] = {"NaN", "-Infinity", "Infinity"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (length >= strlen(words[i]) && memcmp(text, words[i], strlen(words[i])) == 0) return strlen(words[i]);
  return 0;
}

/* With null instead of these words. */
static bool parse_words(struct reading *of, const char *text, size_t length) {
  struct text copy = text_in(of->scratch);
  bool inside = false, found = false;
  for (size_t at = 0; at < length; at++) {
    const size_t word = inside ? 0 : word_at(text + at, length - at);
    const size_t count = word > 0 ? word : inside && text[at] == '\\' && at + 1 < length ? 2 : 1;
    if (count == 1 && text[at] == '"') inside = !inside;
    text_add(&copy, word > 0 ? "null" : text + at, word > 0 ? 4 : count);
    found |= word > 0;
    at += count - 1;
  }
  const bool good = found && parse(of, copy.bytes, copy.length);
  arena_reset(of->scratch);
  return good;
}

/* ---- Columns ---- */

static int column_of(const struct reading *of, int64_t step) {
  const int at = (int)((double)step / ((double)of->last_step + 1) * COLUMNS);
  return at < COLUMNS ? at : COLUMNS - 1;
}

static void add_cell(struct cell *to, const struct cell *from) {
  if (from->count == 0) return;
  if (to->count == 0 || from->least < to->least) to->least = from->least;
  if (to->count == 0 || from->most > to->most) to->most = from->most;
  to->sum += from->sum;
  to->count += from->count;
}

/* Adds column `from` to the one after it in time. */
static void add_column(struct metrics *metrics, int to, int from) {
  struct column *later = &metrics->columns[to], *earlier = &metrics->columns[from];
  later->first = earlier->first;
  later->lines += earlier->lines;
  for (int i = 0; i < metrics->n_series; i++) {
    struct cell *cells = metrics->series[i].cells;
    add_cell(&cells[to], &cells[from]);
    cells[from] = (struct cell){0};
  }
}

static void move_column(struct metrics *metrics, int to, int from) {
  metrics->columns[to] = metrics->columns[from];
  for (int i = 0; i < metrics->n_series; i++) {
    struct cell *cells = metrics->series[i].cells;
    cells[to] = cells[from];
    cells[from] = (struct cell){0};
  }
}

/* Columns of one line each become those of ranges of steps. */
static void fold(struct reading *of) {
  struct metrics *metrics = of->metrics;
  int count = 1;
  for (int i = 1; i < metrics->n_columns; i++) {
    const bool joins = column_of(of, metrics->columns[i].last) == column_of(of, metrics->columns[count - 1].last);
    if (joins)
      add_column(metrics, count - 1, i);
    else if (count++ < i)
      move_column(metrics, count - 1, i);
  }
  metrics->n_columns = count;
  of->is_folded = true;
}

/* The column of a line that is before all that were read: a new one, or the earliest. */
static int open_column(struct reading *of, int64_t step) {
  struct metrics *metrics = of->metrics;
  if (!of->is_folded && metrics->n_columns == COLUMNS) fold(of);
  int at = metrics->n_columns - 1;
  if (!of->is_folded || column_of(of, step) != column_of(of, metrics->columns[at].last)) {
    at = metrics->n_columns++;
    metrics->columns[at] = (struct column){.last = step, .seconds = of->seconds};
  }
  metrics->columns[at].first = step;
  metrics->columns[at].lines++;
  return at;
}

static void add_value(struct series *series, int column, double number, int64_t step) {
  if (!isfinite(number)) {
    series->not_finite++;
    return;
  }
  if (series->count++ == 0) {
    series->last = number;
    series->last_step = step;
  }
  add_cell(&series->cells[column], &(struct cell){number, number, number, 1});
}

/* ---- Lines ---- */

/* The clock goes back by the steps between this line and the one that follows it. */
static void turn_clock_back(struct reading *of, int64_t step) {
  const struct metrics *metrics = of->metrics;
  double ms = NAN;
  for (int i = 0; i < of->n_values; i++)
    if (strcmp(metrics->series[of->values[i].series].name, "step_ms") == 0) ms = of->values[i].number;
  if (of->next_step >= 0) of->seconds -= 1e-3 * of->next_ms * (double)(of->next_step - step);
  of->next_ms = ms;
  of->origin = of->seconds - 1e-3 * ms * (double)step;
}

/* A line counts unless a line after it in the file has its step or an earlier one: the run went back before it. */
static void take_line(struct reading *of) {
  struct metrics *metrics = of->metrics;
  const int64_t step = (int64_t)of->step;
  if (of->next_step >= 0 && step >= of->next_step) {
    metrics->superseded++;
    return;
  }
  if (of->next_step < 0) of->last_step = step;
  turn_clock_back(of, step);
  of->next_step = step;
  metrics->lines++;
  const int column = open_column(of, step);
  for (int i = 0; i < of->n_values; i++)
    add_value(&metrics->series[of->values[i].series], column, of->values[i].number, step);
}

static bool is_blank(const struct back_line *line) {
  size_t at = 0;
  while (at < line->length && strchr(" \t\r", line->text[at]) != NULL && line->text[at] != '\0') at++;
  return at == line->length;
}

/* ---- The order of time ---- */

static void swap_columns(struct metrics *metrics, int a, int b) {
  const struct column column = metrics->columns[a];
  metrics->columns[a] = metrics->columns[b];
  metrics->columns[b] = column;
  for (int i = 0; i < metrics->n_series; i++) {
    struct cell *cells = metrics->series[i].cells;
    const struct cell cell = cells[a];
    cells[a] = cells[b];
    cells[b] = cell;
  }
}

static void finish(struct reading *of) {
  struct metrics *metrics = of->metrics;
  int count = 0;
  for (int i = 0; i < metrics->n_columns / 2; i++) swap_columns(metrics, i, metrics->n_columns - 1 - i);
  for (int i = 0; i < metrics->n_columns; i++) metrics->columns[i].seconds -= of->origin;
  metrics->has_seconds = metrics->lines > 0 && isfinite(of->origin);
  for (int i = 0; i < metrics->n_series; i++)
    if (metrics->series[i].count + metrics->series[i].not_finite > 0) metrics->series[count++] = metrics->series[i];
  metrics->n_series = count;
}

bool metrics_read(struct arena *arena, const char *path, struct metrics *metrics) {
  struct back_lines lines;
  struct back_line line;
  struct reading *of = arena_alloc(arena, sizeof *of);
  if (!back_lines_open(&lines, path)) return false;
  *metrics = (struct metrics){.columns = arena_alloc(arena, COLUMNS * sizeof(struct column)),
                              .series = arena_alloc(arena, MOST_SERIES * sizeof(struct series))};
  *of = (struct reading){.arena = arena, .scratch = arena_new(), .metrics = metrics, .next_step = -1};
  of->values = arena_alloc(arena, MOST_SERIES * sizeof(struct value));
  for (bool is_last = true; back_lines_next(&lines, &line); is_last = false) {
    if (is_blank(&line)) continue;
    if (!line.too_long && (parse(of, line.text, line.length) || parse_words(of, line.text, line.length)))
      take_line(of);
    else if (is_last)
      metrics->cut = true;
    else
      metrics->broken++;
  }
  const int reason = errno;
  back_lines_close(&lines);
  arena_free(of->scratch);
  finish(of);
  errno = reason;
  return reason == 0;
}

const struct series *metrics_find(const struct metrics *metrics, const char *name) {
  for (int i = 0; i < metrics->n_series; i++)
    if (strcmp(metrics->series[i].name, name) == 0) return &metrics->series[i];
  return NULL;
}
