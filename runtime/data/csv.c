#include "runtime/data/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A position in the text that is being read. */
struct reader {
  const char *at, *end;
  int64_t line;   /* from 1 */
  size_t longest; /* bytes that a line may have */
  const struct indices *indices;
  const char *path;
  struct problem *problem;
};

struct cell {
  const char *text;
  size_t length;
};

static bool bad_line(const struct reader *reader) {
  rt_problem(reader->problem, "%s: line %" PRId64 ": longer than %zu bytes, which no row of %" PRId64 " numbers is",
             reader->path, reader->line + 1, reader->longest, reader->indices->width + 1);
  return rt_help(reader->problem, "give a text in which each row is a line, or the features as an array of numpy.save");
}

enum got { GOT_END, GOT_LINE, GOT_BAD };

/* The next line without its end ("\n" or "\r\n"); GOT_END at the end of the text, GOT_BAD with a problem. */
static enum got next_line(struct reader *reader, struct cell *line) {
  if (reader->at == reader->end) return GOT_END;
  size_t left = (size_t)(reader->end - reader->at);
  bool is_cut = left > reader->longest;
  const char *newline = memchr(reader->at, '\n', is_cut ? reader->longest : left);
  if (newline == NULL && is_cut) return bad_line(reader), GOT_BAD;
  const char *stop = newline != NULL ? newline : reader->end;
  *line = (struct cell){reader->at, (size_t)(stop - reader->at)};
  if (line->length > 0 && line->text[line->length - 1] == '\r') line->length--;
  reader->at = newline != NULL ? newline + 1 : reader->end;
  reader->line++;
  return GOT_LINE;
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

/* Whether a cell that is a number holds what is asked of an index: as it is written, not as float32 rounds it. */
static bool check_index(const struct reader *reader, const struct accel_index *index, int column, struct cell cell) {
  char where[400], number[64];
  snprintf(number, sizeof number, "%.*s", (int)cell.length, cell.text);
  if (rt_index_fits(index, strtod(number, NULL))) return true;
  snprintf(where, sizeof where, "%s: line %" PRId64, reader->path, reader->line);
  return rt_index_problem(reader->indices, index, column, where, number, reader->problem);
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
  const struct accel_index *index = reader->indices->items, *last = index + reader->indices->count;
  struct cell cell;
  int column = 0;
  while (next_cell(&line, &cell)) {
    if (column == columns) return bad_width(reader, "more", columns);
    if (!parse_number(cell, &row[column])) return bad_cell(reader, column, cell);
    while (index < last && column >= index->first + index->count) index++;
    if (index < last && column >= index->first && !check_index(reader, index, column, cell)) return false;
    column++;
  }
  return column == columns || bad_width(reader, "fewer", columns);
}

/* ---- Room for rows ---- */

/* From the rows so far, how large the table of the whole text will be. */
static bool check_memory(const struct table *table, const struct reader *reader, const char *text, double memory) {
  double done = (double)(reader->at - text), all = (double)(reader->end - text);
  double bytes = (double)table->rows * table->columns * (double)sizeof *table->values * (all / done);
  if (bytes <= memory) return true;
  rt_problem(reader->problem, "%s: its rows need about %.0f GB of memory, and this machine has %.0f", reader->path,
             bytes / 1e9, memory / 1e9);
  return rt_help(reader->problem,
                 "give the features and the labels as arrays of numpy.save, which stay in their files");
}

static bool no_room(const struct reader *reader, int64_t rows) {
  return rt_problem(reader->problem, "%s: no memory for %" PRId64 " rows", reader->path, rows);
}

/* Makes space for one more row. */
static bool grow(struct table *table, int64_t *capacity, const struct reader *reader, const char *text) {
  enum { FIRST_BYTES = 1 << 20 };
  if (table->rows < *capacity) return true;
  size_t row_bytes = (size_t)table->columns * sizeof *table->values;
  double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  if (table->rows > 0 && !check_memory(table, reader, text, memory)) return false;
  int64_t rows = *capacity > 0 ? *capacity + *capacity / 2 + 1 : (int64_t)(FIRST_BYTES / row_bytes) + 1;
  float *values = realloc(table->values, (size_t)rows * row_bytes);
  if (values == NULL) return no_room(reader, rows);
  table->values = values;
  *capacity = rows;
  return true;
}

static bool read_rows(struct table *table, struct reader *reader) {
  const char *text = reader->at;
  struct cell line;
  int64_t capacity = 0;
  enum got got;
  while ((got = next_line(reader, &line)) == GOT_LINE) {
    if (trimmed(line).length == 0 || (reader->line == 1 && is_header(line))) continue;
    if (!grow(table, &capacity, reader, text)) return false;
    if (!read_row(reader, line, table->columns, table->values + table->rows * table->columns)) return false;
    table->rows++;
  }
  return got == GOT_END;
}

bool rt_csv_read(struct table *table, const struct indices *indices, const char *path, const char *text, size_t size,
                 struct problem *problem) {
  enum { CELL_BYTES = 256, LEAST_BYTES = 1 << 16 }; /* of a line, with its blanks and its header's words */
  *table = (struct table){.columns = (int)indices->width + 1};
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, size -= 3; /* the byte order mark of spreadsheets */
  if (size == 0) return true;
  struct reader reader = {.at = text, .end = text + size, .indices = indices, .path = path, .problem = problem};
  reader.longest = LEAST_BYTES + CELL_BYTES * (size_t)table->columns;
  if (read_rows(table, &reader)) return true;
  rt_table_free(table);
  return false;
}

void rt_table_free(struct table *table) {
  free(table->values);
  *table = (struct table){0};
}
