#include "runtime/data/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A place in the text that is being read. */
struct reader {
  const char *at, *end;
  int64_t line; /* from 1 */
  const char *path;
  struct problem *problem;
};

struct cell {
  const char *text;
  size_t length;
};

/* The next line without its end ("\n" or "\r\n"). False at the end of the text. */
static bool next_line(struct reader *reader, struct cell *line) {
  if (reader->at == reader->end) return false;
  size_t left = (size_t)(reader->end - reader->at);
  const char *newline = memchr(reader->at, '\n', left);
  const char *stop = newline != NULL ? newline : reader->end;
  *line = (struct cell){reader->at, (size_t)(stop - reader->at)};
  if (line->length > 0 && line->text[line->length - 1] == '\r') line->length--;
  reader->at = newline != NULL ? newline + 1 : reader->end;
  reader->line++;
  return true;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

static struct cell trimmed(struct cell cell) {
  while (cell.length > 0 && is_blank(cell.text[0])) cell.text++, cell.length--;
  while (cell.length > 0 && is_blank(cell.text[cell.length - 1])) cell.length--;
  return cell;
}

/* Takes the first cell off a line. False when nothing is left; an empty line has no cell, "," has two. */
static bool next_cell(struct cell *line, struct cell *cell) {
  if (line->text == NULL) return false;
  const char *comma = memchr(line->text, ',', line->length);
  size_t length = comma != NULL ? (size_t)(comma - line->text) : line->length;
  *cell = trimmed((struct cell){line->text, length});
  *line = comma != NULL ? (struct cell){comma + 1, line->length - length - 1} : (struct cell){NULL, 0};
  return true;
}

/* A finite decimal number and nothing else: strtof alone would take hexadecimal, "inf" and "nan" as well. */
static bool parse_number(struct cell cell, float *value) {
  char copy[64];
  if (cell.length == 0 || cell.length >= sizeof copy) return false;
  memcpy(copy, cell.text, cell.length);
  copy[cell.length] = '\0';
  if (strspn(copy, "0123456789+-.eE") != cell.length) return false;
  char *end;
  *value = strtof(copy, &end);
  return end == copy + cell.length && isfinite(*value);
}

static bool is_header(struct cell line) {
  struct cell cell;
  float ignored;
  while (next_cell(&line, &cell))
    if (!parse_number(cell, &ignored)) return true;
  return false;
}

static bool bad_cell(const struct reader *reader, int column, struct cell cell) {
  int shown = cell.length > 40 ? 40 : (int)cell.length;
  if (cell.length == 0)
    rt_problem(reader->problem, "%s: line %" PRId64 ", column %d: no value", reader->path, reader->line, column + 1);
  else
    rt_problem(reader->problem, "%s: line %" PRId64 ", column %d: '%.*s' is not a finite decimal number", reader->path,
               reader->line, column + 1, shown, cell.text);
  return rt_help(reader->problem,
                 "every cell below the header must be a number such as 1, -0.5 or 2e-3, separated by commas");
}

static bool bad_width(const struct reader *reader, const char *relation, int columns) {
  rt_problem(reader->problem, "%s: line %" PRId64 ": %s than %d columns", reader->path, reader->line, relation,
             columns);
  return rt_help(reader->problem, "the job asks for %d features and a label in the last column", columns - 1);
}

static bool read_row(const struct reader *reader, struct cell line, int columns, float *row) {
  struct cell cell;
  int column = 0;
  while (next_cell(&line, &cell)) {
    if (column == columns) return bad_width(reader, "more", columns);
    if (!parse_number(cell, &row[column])) return bad_cell(reader, column, cell);
    column++;
  }
  return column == columns || bad_width(reader, "fewer", columns);
}

static int64_t count_lines(const char *text, size_t size) {
  int64_t lines = 1;
  for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
  return lines;
}

static bool read_rows(struct table *table, struct reader *reader) {
  struct cell line;
  while (next_line(reader, &line)) {
    if (trimmed(line).length == 0 || (reader->line == 1 && is_header(line))) continue;
    if (!read_row(reader, line, table->columns, table->values + table->rows * table->columns)) return false;
    table->rows++;
  }
  return true;
}

bool rt_csv_read(struct table *table, int columns, const char *path, const char *text, size_t size,
                 struct problem *problem) {
  *table = (struct table){.columns = columns};
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, size -= 3; /* the byte order mark of spreadsheets */
  if (size == 0) return true;
  struct reader reader = {text, text + size, 0, path, problem};
  /* A line of `columns` numbers takes that many bytes with its commas, so the text bounds the rows that it can hold. */
  int64_t rows = count_lines(text, size), most = (int64_t)(size / (size_t)columns) + 1;
  table->values = calloc((size_t)(rows < most ? rows : most) + 1, (size_t)columns * sizeof *table->values);
  if (table->values == NULL) return rt_problem(problem, "%s: no memory for %" PRId64 " rows", path, rows);
  if (read_rows(table, &reader)) return true;
  rt_table_free(table);
  return false;
}

void rt_table_free(struct table *table) {
  free(table->values);
  *table = (struct table){0};
}
