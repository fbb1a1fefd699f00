/* metrics.csv: a column for each number, and a row for each line. A number that appears later adds its column to the
 * header, and the file is written anew. */
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"
#include "runtime/tracking/journal.h"
#include "runtime/tracking/sink.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct csv {
  struct journal journal;
  char **columns;           /* after that of the step, as the header has them, quotes included */
  int n_columns, n_in_file; /* those that the rows of the file have */
};

static bool is_plain(const char *name) {
  return strpbrk(name, ",\"\r\n") == NULL;
}

/* The name as RFC 4180 has it: in quotes where it has a mark of its own. The caller frees it. */
static char *quoted(const char *name) {
  struct bytes text = {0};
  if (is_plain(name)) {
    rt_bytes_print(&text, "%s", name);
  } else {
    rt_bytes_print(&text, "\"");
    for (const char *c = name; *c != '\0'; c++)
      rt_bytes_print(&text, *c == '"' ? "\"\"" : "%c", *c == '\n' || *c == '\r' ? ' ' : *c);
    rt_bytes_print(&text, "\"");
  }
  rt_bytes_add(&text, "", 1);
  if (!text.failed) return (char *)text.data;
  rt_bytes_free(&text);
  return NULL;
}

/* Takes the text. */
static bool add_column(struct csv *csv, char *column) {
  char **columns = realloc(csv->columns, ((size_t)csv->n_columns + 1) * sizeof *columns);
  if (columns != NULL) csv->columns = columns;
  if (columns == NULL || column == NULL) return free(column), false;
  csv->columns[csv->n_columns++] = column;
  return true;
}

/* The end of the field at `at`. */
static size_t field_end(const char *line, size_t length, size_t at) {
  bool inside = false;
  for (; at < length && (inside || line[at] != ','); at++) inside ^= line[at] == '"';
  return at;
}

/* The length of the header, which is never written in part: 0 where the file does not begin with one. */
static size_t header_length(const char *text, size_t size) {
  enum { MOST = 1 << 22 };
  const char *end = size > 0 ? memchr(text, '\n', size < MOST ? size : MOST) : NULL;
  const bool good =
      end != NULL && end - text >= 4 && memcmp(text, "step", 4) == 0 && (text[4] == ',' || text[4] == '\n');
  return good ? (size_t)(end - text) : 0;
}

static bool cut(const uint8_t *bytes, size_t size, int64_t keep, int64_t *whole) {
  *whole = 0;
  if (header_length((const char *)bytes, size) == 0) return rt_is_last(bytes, size, 0);
  *whole = rt_cut_lines(bytes, size, "", keep);
  return true;
}

/* The columns that the header of a file has. */
static bool read_header(struct csv *csv, struct problem *problem) {
  struct mapping mapping;
  bool good = true;
  if (csv->journal.whole == 0) return true;
  if (!rt_map(&mapping, csv->journal.path, "remove it", problem)) return false;
  const char *line = (const char *)mapping.bytes;
  const size_t length = header_length(line, mapping.size);
  for (size_t at = field_end(line, length, 0); good && at < length;) {
    const size_t end = field_end(line, length, at + 1);
    good = add_column(csv, strndup(line + at + 1, end - at - 1));
    at = end;
  }
  csv->n_in_file = csv->n_columns;
  rt_unmap(&mapping);
  return good || rt_problem(problem, "%s: no memory for its columns", csv->journal.path);
}

static void add_header(const struct csv *csv, struct bytes *to) {
  rt_bytes_print(to, "step");
  for (int i = 0; i < csv->n_columns; i++) rt_bytes_print(to, ",%s", csv->columns[i]);
  rt_bytes_print(to, "\n");
}

/* Adds rows with `more` empty fields at the end of each. */
static void add_wider(struct bytes *to, const char *rows, size_t size, int more) {
  for (size_t at = 0; at < size;) {
    const char *end = memchr(rows + at, '\n', size - at);
    const size_t count = end != NULL ? (size_t)(end - rows) - at : size - at;
    rt_bytes_add(to, rows + at, count);
    for (int i = 0; i < more; i++) rt_bytes_print(to, ",");
    rt_bytes_print(to, "\n");
    at += count + 1;
  }
}

/* The file with the header of now, and its rows as wide as that. */
static bool widened(const struct csv *csv, struct bytes *text, struct problem *problem) {
  struct mapping mapping;
  if (!rt_map(&mapping, csv->journal.path, "remove it", problem)) return false;
  const char *rows = (const char *)mapping.bytes;
  const char *first = mapping.size > 0 ? memchr(rows, '\n', mapping.size) : NULL;
  const size_t header = first != NULL ? (size_t)(first - rows) + 1 : mapping.size;
  add_header(csv, text);
  if (mapping.size > header) add_wider(text, rows + header, mapping.size - header, csv->n_columns - csv->n_in_file);
  rt_unmap(&mapping);
  return !text->failed || rt_problem(problem, "%s: no memory for its rows", csv->journal.path);
}

/* Replaces the file by a wider one; what waits is kept. */
static bool widen(struct csv *csv, struct problem *problem) {
  struct bytes text = {0};
  struct journal wider, *journal = &csv->journal;
  bool good = widened(csv, &text, problem) &&
              rt_write_file(journal->path, BY_RENAME, text.data, text.count, NULL, problem) &&
              rt_journal_open(&wider, journal->path, INT64_MAX, cut, problem);
  rt_bytes_free(&text);
  if (!good) return false;
  wider.waiting = journal->waiting;
  good = rt_journal_rest(journal, problem);
  *journal = wider;
  csv->n_in_file = csv->n_columns;
  return good;
}

static bool open_file(void *state, const struct tracked *tracked, struct problem *problem) {
  struct csv *csv = state;
  char path[4096];
  return rt_join(path, sizeof path, tracked->project_dir, "metrics.csv", problem) &&
         rt_journal_open(&csv->journal, path, tracked->keep, cut, problem) && read_header(csv, problem);
}

/* The column of a number, which gets one where it has none; rows that wait get it, too. Below 0: no memory. */
static int column_of(struct csv *csv, const char *name, int hint) {
  char *column = quoted(name);
  if (column == NULL) return -1;
  if (hint < csv->n_columns && strcmp(csv->columns[hint], column) == 0) return free(column), hint;
  for (int i = 0; i < csv->n_columns; i++)
    if (strcmp(csv->columns[i], column) == 0) return free(column), i;
  if (!add_column(csv, column)) return -1;
  struct bytes rows = csv->journal.waiting;
  csv->journal.waiting = (struct bytes){0};
  add_wider(&csv->journal.waiting, (const char *)rows.data, rows.count, 1);
  rt_bytes_free(&rows);
  return csv->n_columns - 1;
}

static void add_field(struct bytes *row, const struct scalar *scalar) {
  const double value = scalar != NULL ? scalar->value : 0;
  rt_bytes_print(row, ",");
  if (scalar != NULL && isfinite(value))
    rt_bytes_print(row, scalar->format, value);
  else if (scalar != NULL)
    rt_bytes_print(row, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static void add_scalars(void *state, int64_t step, double now, const struct scalars *scalars) {
  struct csv *csv = state;
  struct bytes row = {0};
  const int most = csv->n_columns + scalars->count;
  const struct scalar **fields = calloc((size_t)most + 1, sizeof *fields);
  (void)now;
  row.failed = fields == NULL;
  for (int i = 0; fields != NULL && i < scalars->count; i++) {
    const int column = column_of(csv, scalars->items[i].name, i);
    if (column >= 0) fields[column] = &scalars->items[i];
    row.failed |= column < 0;
  }
  rt_bytes_print(&row, "%" PRId64, step);
  for (int i = 0; fields != NULL && i < csv->n_columns; i++) add_field(&row, fields[i]);
  rt_bytes_print(&row, "\n");
  rt_journal_add(&csv->journal, &row);
  free(fields);
}

static bool flush(void *state, struct problem *problem) {
  struct csv *csv = state;
  return (csv->n_in_file == csv->n_columns || widen(csv, problem)) && rt_journal_flush(&csv->journal, problem);
}

static bool close_file(void *state, double now, enum run_end end, struct problem *problem) {
  struct csv *csv = state;
  (void)now;
  (void)end;
  bool good = rt_journal_close(&csv->journal, problem);
  for (int i = 0; i < csv->n_columns; i++) free(csv->columns[i]);
  free(csv->columns);
  return good;
}

const struct accel_sink accel_sink_csv = {.name = "csv",
                                          .bytes = sizeof(struct csv),
                                          .open = open_file,
                                          .cut = cut,
                                          .scalars = add_scalars,
                                          .flush = flush,
                                          .close = close_file};
