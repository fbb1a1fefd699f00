#include "gen/report/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The bytes of the character of UTF-8 at a text; 0: there is none. */
static size_t character_at(const unsigned char *at) {
  if (at[0] < 0x80) return 1;
  const size_t count = at[0] >= 0xC2 && at[0] < 0xE0   ? 2
                       : at[0] >= 0xE0 && at[0] < 0xF0 ? 3
                       : at[0] >= 0xF0 && at[0] < 0xF5 ? 4
                                                       : 0;
  for (size_t i = 1; i < count; i++)
    if ((at[i] & 0xC0) != 0x80) return 0;
  if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] >= 0xA0)) return 0;
  if ((at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] >= 0x90)) return 0;
  return count;
}

const char *data_clean(struct arena *arena, const char *text) {
  char *copy = arena_string(arena, text);
  for (char *at = copy; *at != '\0';) {
    const size_t count = character_at((const unsigned char *)at);
    const bool control = (unsigned char)*at < 0x20 && *at != '\n' && *at != '\t';
    if (count == 0 || control || *at == 0x7F) *at = '?';
    at += count > 0 ? count : 1;
  }
  return copy;
}

void data_text(struct text *out, const char *text) {
  text_puts(out, "\"");
  for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
    const size_t count = character_at(at);
    if (count == 0)
      text_puts(out, "?");
    else if (count == 1 &&
             (*at < 0x20 || *at == '"' || *at == '\\' || *at == '<' || *at == '>' || *at == '&' || *at == 0x7F))
      text_printf(out, "\\u%04x", *at);
    else
      text_add(out, at, count);
    at += count > 0 ? count : 1;
  }
  text_puts(out, "\"");
}

void data_number(struct text *out, double number) {
  char text[40];
  snprintf(text, sizeof text, "%.9g", number);
  if (!isfinite(number))
    snprintf(text, sizeof text, "null");
  else if (strtod(text, NULL) != number)
    snprintf(text, sizeof text, "%.17g", number);
  text_puts(out, text);
}

enum part { MEAN, LEAST, MOST };

static void add_cells(struct text *out, const struct cell *cells, int count, enum part part) {
  text_puts(out, "[");
  for (int i = 0; i < count; i++) {
    const struct cell *cell = &cells[i];
    const double number = cell->count == 0 ? NAN
                          : part == LEAST  ? cell->least
                          : part == MOST   ? cell->most
                                           : cell->sum / (double)cell->count;
    if (i > 0) text_puts(out, ",");
    data_number(out, number);
  }
  text_puts(out, "]");
}

static void add_series(struct text *out, const struct series *series, int count) {
  bool wide = false;
  for (int i = 0; i < count; i++) wide |= series->cells[i].count > 1;
  data_text(out, series->name);
  text_puts(out, ":{\"mean\":");
  add_cells(out, series->cells, count, MEAN);
  if (wide) {
    text_puts(out, ",\"least\":");
    add_cells(out, series->cells, count, LEAST);
    text_puts(out, ",\"most\":");
    add_cells(out, series->cells, count, MOST);
  }
  text_puts(out, "}");
}

static void add_list(struct text *out, const char *name, const struct metrics *metrics,
                     double (*of)(const struct column *column)) {
  text_printf(out, "\"%s\":[", name);
  for (int i = 0; i < metrics->n_columns; i++) {
    if (i > 0) text_puts(out, ",");
    data_number(out, of(&metrics->columns[i]));
  }
  text_puts(out, "],");
}

static double first_of(const struct column *column) {
  return (double)column->first;
}

static double last_of(const struct column *column) {
  return (double)column->last;
}

static double lines_of_column(const struct column *column) {
  return (double)column->lines;
}

/* To the millisecond: steps are not timed more exactly. */
static double seconds_of(const struct column *column) {
  return round(1e3 * column->seconds) / 1e3;
}

void data_metrics(struct text *out, const struct metrics *metrics, bool (*wanted)(const char *name)) {
  if (metrics->lines > metrics->n_columns) {
    add_list(out, "first", metrics, first_of);
    add_list(out, "lines", metrics, lines_of_column);
  }
  add_list(out, "last", metrics, last_of);
  if (metrics->has_seconds) add_list(out, "seconds", metrics, seconds_of);
  text_puts(out, "\"series\":{");
  bool is_first = true;
  for (int i = 0; i < metrics->n_series; i++) {
    if (!wanted(metrics->series[i].name)) continue;
    if (!is_first) text_puts(out, ",");
    add_series(out, &metrics->series[i], metrics->n_columns);
    is_first = false;
  }
  text_puts(out, "}");
}
