#include "runtime/data/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/ending.h"

/* A position in the text that is being read. */
struct reader {
  const char *at, *end;
  int64_t line;   /* from 1 */
  size_t longest; /* bytes that a line may have */
  char separator;
  int columns;        /* of the text */
  int64_t *number_of; /* by column: the number of a row that it holds; -1: none. NULL: its own index */
  const struct indices *indices;
  const char *path;
  struct problem *problem;
};

struct cell {
  const char *text;
  size_t length;
};

static bool is_named(const struct indices *indices) {
  return indices->n_inputs > 0 && indices->inputs[0]->column != NULL;
}

static bool bad_line(const struct reader *reader) {
  if (is_named(reader->indices)) {
    rt_problem(reader->problem, "%s: line %" PRId64 ": a row of more than %zu bytes", reader->path, reader->line + 1,
               reader->longest);
    return rt_help(reader->problem, "close the quotes of its cells, or shorten them");
  }
  rt_problem(reader->problem, "%s: line %" PRId64 ": longer than %zu bytes, which no row of %" PRId64 " numbers is",
             reader->path, reader->line + 1, reader->longest, reader->indices->width);
  return rt_help(reader->problem, "give a text in which each row is a line, or the features as an array of numpy.save");
}

enum got { GOT_END, GOT_LINE, GOT_BAD };

static bool is_blank(const struct reader *reader, char c) {
  return c == ' ' || (c == '\t' && reader->separator != '\t');
}

/* Quotes that are open in a row. */
struct quotes {
  bool is_open;
  const char *closed; /* the last quote that closed some; NULL: none */
};

/* Takes a quote into account: one opens where a cell begins, or after one that closed, as a doubled one; within a cell
 * without quotes, such as 12" wide, it is a character like others. `row` is where the row begins. */
static void take_quote(const struct reader *reader, struct quotes *quotes, const char *row, const char *quote) {
  if (quotes->is_open) {
    *quotes = (struct quotes){false, quote};
    return;
  }
  const char *before = quote;
  while (before > row && is_blank(reader, before[-1])) before--;
  quotes->is_open =
      before == row || before[-1] == reader->separator || (quotes->closed != NULL && quotes->closed + 1 == quote);
}

/* The end of a row: the first newline that no quotes are open before; NULL: there is none. */
static const char *end_of_row(const struct reader *reader, size_t most, int64_t *newlines) {
  const char *from = reader->at, *stop = reader->at + most, *newline;
  struct quotes quotes = {0};
  *newlines = 0;
  while ((newline = memchr(from, '\n', (size_t)(stop - from))) != NULL) {
    for (const char *quote = from; (quote = memchr(quote, '"', (size_t)(newline - quote))) != NULL; quote++)
      take_quote(reader, &quotes, reader->at, quote);
    ++*newlines;
    if (!quotes.is_open) return newline;
    from = newline + 1;
  }
  return NULL;
}

/* The next row without its end ("\n" or "\r\n"); GOT_END at the end of the text, GOT_BAD with a problem. */
static enum got next_line(struct reader *reader, struct cell *line) {
  if (reader->at == reader->end) return GOT_END;
  size_t left = (size_t)(reader->end - reader->at);
  bool is_cut = left > reader->longest;
  int64_t newlines;
  const char *newline = end_of_row(reader, is_cut ? reader->longest : left, &newlines);
  if (newline == NULL && is_cut) return bad_line(reader), GOT_BAD;
  const char *stop = newline != NULL ? newline : reader->end;
  *line = (struct cell){reader->at, (size_t)(stop - reader->at)};
  if (line->length > 0 && line->text[line->length - 1] == '\r') line->length--;
  reader->at = newline != NULL ? newline + 1 : reader->end;
  reader->line += newline != NULL ? newlines : 1;
  return GOT_LINE;
}

static struct cell trimmed(const struct reader *reader, struct cell cell) {
  while (cell.length > 0 && is_blank(reader, cell.text[0])) cell.text++, cell.length--;
  while (cell.length > 0 && is_blank(reader, cell.text[cell.length - 1])) cell.length--;
  return cell;
}

/* The bytes of a cell with what separates it from the next one; of a quoted one, separators within it are its own. */
static size_t cell_length(const struct reader *reader, struct cell line) {
  struct quotes quotes = {0};
  for (size_t i = 0; i < line.length; i++) {
    if (line.text[i] == '"') take_quote(reader, &quotes, line.text, line.text + i);
    if (line.text[i] == reader->separator && !quotes.is_open) return i;
  }
  return line.length;
}

/* Takes the first cell off a line, without its quotes. False when nothing is left; an empty line has no cell, "," has
 * two. */
static bool next_cell(const struct reader *reader, struct cell *line, struct cell *cell) {
  if (line->text == NULL) return false;
  size_t length = cell_length(reader, *line);
  bool is_last = length == line->length;
  *cell = trimmed(reader, (struct cell){line->text, length});
  *line = is_last ? (struct cell){NULL, 0} : (struct cell){line->text + length + 1, line->length - length - 1};
  if (cell->length > 1 && cell->text[0] == '"' && cell->text[cell->length - 1] == '"')
    *cell = (struct cell){cell->text + 1, cell->length - 2};
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
static bool check_index(const struct reader *reader, const struct accel_index *index, int64_t at, struct cell cell) {
  char where[400], found[64];
  snprintf(found, sizeof found, "%.*s", (int)cell.length, cell.text);
  if (rt_index_fits(index, strtod(found, NULL))) return true;
  snprintf(where, sizeof where, "%s: line %" PRId64, reader->path, reader->line);
  return rt_index_problem(reader->indices, index, at, where, found, reader->problem);
}

static bool is_header(const struct reader *reader, struct cell line) {
  struct cell cell;
  float ignored;
  while (next_cell(reader, &line, &cell))
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

static bool bad_width(const struct reader *reader, const char *relation) {
  rt_problem(reader->problem, "%s: line %" PRId64 ": %s than %d columns", reader->path, reader->line, relation,
             reader->columns);
  if (is_named(reader->indices)) return rt_help(reader->problem, "the header has so many");
  return rt_help(reader->problem, "the job asks for %" PRId64 " features and a label in the last column",
                 reader->indices->width - 1);
}

/* The item that asks something of a number of a row; NULL: there is none. */
static const struct accel_index *index_of(const struct indices *indices, int64_t number) {
  for (int i = 0; i < indices->count; i++)
    if (number >= indices->items[i].first && number < indices->items[i].first + indices->items[i].count)
      return &indices->items[i];
  return NULL;
}

/* Number `number` of a row, from a cell in column `column`. */
static bool read_cell(const struct reader *reader, int column, int64_t number, struct cell cell, uint32_t *row) {
  const struct accel_index *index = index_of(reader->indices, number);
  float value;
  if (!parse_number(cell, &value)) return bad_cell(reader, column, cell);
  if (index != NULL && !check_index(reader, index, number, cell)) return false;
  if (reader->indices->inputs[rt_input_of_number(reader->indices, number)]->dtype == ACCEL_INT32) {
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", (int)cell.length, cell.text);
    const int32_t integer = (int32_t)strtod(copy, NULL);
    memcpy(&row[number], &integer, sizeof integer);
  } else {
    memcpy(&row[number], &value, sizeof value);
  }
  return true;
}

static bool read_row(const struct reader *reader, struct cell line, uint32_t *row) {
  struct cell cell;
  int column = 0;
  for (; next_cell(reader, &line, &cell); column++) {
    if (column == reader->columns) return bad_width(reader, "more");
    int64_t number = reader->number_of != NULL ? reader->number_of[column] : column;
    if (number >= 0 && !read_cell(reader, column, number, cell, row)) return false;
  }
  return column == reader->columns || bad_width(reader, "fewer");
}

/* ---- The header ---- */

/* Whether a cell is a name; quotes within it are doubled. */
static bool is_name(struct cell cell, const char *name) {
  size_t at = 0;
  for (size_t i = 0; i < cell.length; i++, at++) {
    if (name[at] == '\0' || name[at] != cell.text[i]) return false;
    if (cell.text[i] == '"' && i + 1 < cell.length && cell.text[i + 1] == '"') i++;
  }
  return name[at] == '\0';
}

/* The column of a header that has a name; -1: none has. The number of those that have it is in *count. */
static int column_named(const struct reader *reader, struct cell header, const char *name, int *count) {
  struct cell cell;
  int found = -1;
  *count = 0;
  for (int column = 0; next_cell(reader, &header, &cell); column++)
    if (is_name(cell, name) && (*count)++ == 0) found = column;
  return found;
}

/* Finds the column of each input. */
static bool read_header(struct reader *reader, struct cell header) {
  struct cell rest = header, cell;
  while (next_cell(reader, &rest, &cell)) reader->columns++;
  reader->number_of = malloc((size_t)reader->columns * sizeof *reader->number_of);
  if (reader->number_of == NULL) return rt_problem(reader->problem, "%s: no memory for its header", reader->path);
  for (int i = 0; i < reader->columns; i++) reader->number_of[i] = -1;
  int64_t number = 0;
  for (int i = 0; i < reader->indices->n_inputs; i++) {
    const struct accel_input *input = reader->indices->inputs[i];
    int count, column = column_named(reader, header, input->column, &count);
    if (count != 1 || reader->number_of[column] >= 0) {
      const char *what = count == 0 ? "no column is" : count == 1 ? "two inputs take the column" : "two columns are";
      rt_problem(reader->problem, "%s: line %" PRId64 ": %s named '%s'", reader->path, reader->line, what,
                 input->column);
      return rt_help(reader->problem, "give data.inputs.%s.column a name that the header has once", input->name);
    }
    reader->number_of[column] = number;
    number += input->width;
  }
  return true;
}

/* ---- Room for rows ---- */

/* From the rows so far, how large the table of the whole text will be. */
static bool check_memory(const struct table *table, const struct reader *reader, const char *text, double memory) {
  double done = (double)(reader->at - text), all = (double)(reader->end - text);
  double row = (double)reader->indices->width * (double)sizeof *table->cells;
  double bytes = (double)table->rows * row * (all / done);
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
  size_t row_bytes = (size_t)reader->indices->width * sizeof *table->cells;
  double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  if (table->rows > 0 && !check_memory(table, reader, text, memory)) return false;
  int64_t rows = *capacity > 0 ? *capacity + *capacity / 2 + 1 : (int64_t)(FIRST_BYTES / row_bytes) + 1;
  uint32_t *cells = realloc(table->cells, (size_t)rows * row_bytes);
  if (cells == NULL) return no_room(reader, rows);
  table->cells = cells;
  *capacity = rows;
  return true;
}

static bool read_rows(struct table *table, struct reader *reader) {
  const char *text = reader->at;
  struct cell line;
  int64_t capacity = 0;
  enum got got;
  bool is_first = true;
  while ((got = next_line(reader, &line)) == GOT_LINE) {
    if (trimmed(reader, line).length == 0) continue;
    bool names = is_first && is_named(reader->indices), header = names || (is_first && is_header(reader, line));
    is_first = false;
    if (names && !read_header(reader, line)) return false;
    if (header) continue;
    if (!grow(table, &capacity, reader, text)) return false;
    if (!read_row(reader, line, table->cells + table->rows * reader->indices->width)) return false;
    table->rows++;
  }
  return got == GOT_END;
}

bool rt_csv_read(struct table *table, const struct indices *indices, const char *path, const char *text, size_t size,
                 struct problem *problem) {
  /* Of a line of numbers, with its blanks and its header's words; of a row with texts in it. */
  enum { CELL_BYTES = 256, LEAST_BYTES = 1 << 16, MOST_BYTES = 64 << 20 };
  *table = (struct table){0};
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, size -= 3; /* the byte order mark of spreadsheets */
  if (size == 0) return true;
  struct reader reader = {.at = text, .end = text + size, .indices = indices, .path = path, .problem = problem};
  reader.longest = is_named(indices) ? MOST_BYTES : LEAST_BYTES + CELL_BYTES * (size_t)indices->width;
  reader.columns = is_named(indices) ? 0 : (int)indices->width;
  reader.separator = rt_has_ending(path, ".tsv") ? '\t' : ',';
  bool good = read_rows(table, &reader);
  free(reader.number_of);
  if (!good) rt_table_free(table);
  return good;
}

void rt_table_free(struct table *table) {
  free(table->cells);
  *table = (struct table){0};
}
