#include "gen/tokenizer/documents.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/tokenizer/bytes.h"
#include "gen/tokenizer/documents_parts.h"
#include "gen/unpack/shard.h"

bool documents_bad(const struct documents *of, int64_t line, int64_t column, const char *what, const char *remedy,
                   struct problem *problem) {
  char place[48] = "";
  if (column > 0)
    snprintf(place, sizeof place, ":%" PRId64 ":%" PRId64, line, column);
  else if (of->shard == NULL)
    snprintf(place, sizeof place, ":%" PRId64, line);
  rt_problem(problem, "%s%s%s%s: %s", of->path, of->shard != NULL ? ": " : "", of->member, place, what);
  return rt_help(problem, "%s", remedy);
}

static bool too_long(const struct documents *of, struct problem *problem) {
  char what[96];
  snprintf(what, sizeof what, "the record is longer than %d bytes", DOCUMENT_MOST);
  return documents_bad(of, of->line, 0, what, "give each document a record of its own", problem);
}

/* Sees more of the file, from `at` on. False with a problem. */
static bool see_more(struct documents *of, struct problem *problem) {
  of->is_broken = !window_more(&of->in, of->at, problem);
  of->at = of->record_start = 0;
  return !of->is_broken;
}

/* ---- JSON Lines ---- */

/* The line at `at` without its end, and where the next one begins. False with a problem where it is too long, or cannot
 * be read. */
static bool line_at(struct documents *of, size_t *length, size_t *next, struct problem *problem) {
  for (;;) {
    size_t left = of->in.size - of->at, most = left < DOCUMENT_MOST ? left : DOCUMENT_MOST;
    const char *from = of->in.bytes + of->at, *end = memchr(from, '\n', most);
    if (end == NULL && left > most) return too_long(of, problem);
    if (end != NULL || of->in.is_last) {
      *length = end != NULL ? (size_t)(end - from) : left;
      *next = of->at + *length + (end != NULL);
      return true;
    }
    if (!see_more(of, problem)) return false;
  }
}

/* Whether something is at `at`, of which more is seen where the window ends. */
static bool has_more(struct documents *of, struct problem *problem) {
  while (of->at == of->in.size && !of->in.is_last)
    if (!see_more(of, problem)) return false;
  return of->at < of->in.size;
}

static bool is_blank(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (strchr(" \t\r", text[i]) == NULL || text[i] == '\0') return false;
  return true;
}

const char *documents_keys(const json_t *record, char *out, size_t size) {
  const char *key;
  json_t *value;
  size_t used = 0;
  out[0] = '\0';
  json_object_foreach((json_t *)record, key, value) {
    (void)value;
    int more = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", key);
    if (more < 0 || (size_t)more >= size - used) {
      out[used] = '\0';
      break;
    }
    used += (size_t)more;
  }
  return out;
}

static bool take_made(struct documents *of, int64_t line, struct problem *problem);

/* The text of the record that was read. */
static bool take_field(struct documents *of, struct problem *problem) {
  char what[300], keys[160];
  if (!json_is_object(of->record))
    return documents_bad(of, of->line, 1, "not an object, as each line of JSON Lines is",
                         "give a file of one object a line", problem);
  if (of->selector.kind == TEXT_MADE) return take_made(of, of->line, problem);
  const json_t *text = json_object_get(of->record, of->selector.name);
  if (text == NULL) {
    snprintf(what, sizeof what, "the record has no field '%s'", of->selector.name);
    documents_bad(of, of->line, 0, what, "", problem);
    return rt_help(problem, "its fields are: %s", documents_keys(of->record, keys, sizeof keys));
  }
  snprintf(what, sizeof what, "the field '%s' is not a text", of->selector.name);
  if (!json_is_string(text)) return documents_bad(of, of->line, 0, what, "name a field that holds a text", problem);
  of->text = json_string_value(text);
  of->length = json_string_length(text);
  return true;
}

/* The text of a record that is as most are. */
static bool find_field(struct documents *of, const char *record, size_t size) {
  if (of->selector.kind != TEXT_FIELD || !json_field_find(&of->field, of->selector.name, record, size)) return false;
  of->text = of->field.text;
  of->length = of->field.length;
  return true;
}

bool documents_take_record(struct documents *of, const char *record, size_t size, struct problem *problem) {
  if (find_field(of, record, size)) return true;
  json_error_t error;
  json_decref(of->record);
  of->record = json_loadb(record, size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
  if (of->record != NULL) return take_field(of, problem);
  const int64_t line = of->shard != NULL ? error.line : of->line,
                column = of->shard != NULL ? error.column : error.position;
  return documents_bad(of, line, column > 0 ? column : 1, error.text, "give a file of one object a line", problem);
}

static enum document next_record(struct documents *of, struct problem *problem) {
  size_t length = 0, next = 0;
  for (; has_more(of, problem); of->at = next, of->line++) {
    of->record_start = of->at;
    if (!line_at(of, &length, &next, problem)) return DOCUMENT_BAD;
    const char *text = of->in.bytes + of->at;
    if (is_blank(text, length)) continue;
    if (!documents_take_record(of, text, length, problem)) return DOCUMENT_BAD;
    of->at = next;
    of->line++;
    return DOCUMENT_NEXT;
  }
  return of->is_broken ? DOCUMENT_BAD : DOCUMENT_NONE;
}

/* ---- CSV ---- */

/* One row as it is read: which cell, and where in the row. */
struct row {
  size_t at;
  int64_t line, begin; /* begin: the byte of the window where this line of it begins */
  bool quoted;         /* the current cell */
};

static bool put(struct documents *of, char c, struct problem *problem) {
  if (of->length == of->capacity) {
    size_t capacity = of->capacity > 0 ? 2 * of->capacity : 4096;
    char *grown = realloc(of->cell, capacity);
    if (grown == NULL) return rt_problem(problem, "%s: no memory for a record", of->path);
    of->cell = grown;
    of->capacity = capacity;
  }
  of->cell[of->length++] = c;
  return true;
}

/* Reads a cell, into memory where it is `stored`. False with a problem; *last says that the row ends after it. */
static bool read_cell(struct documents *of, struct row *row, bool stored, bool *last, struct problem *problem) {
  const char *bytes = of->in.bytes;
  const size_t size = of->in.size;
  int64_t line = row->line, column = (int64_t)row->at - row->begin + 1;
  if (stored) of->length = 0;
  row->quoted = row->at < size && bytes[row->at] == '"';
  bool inside = row->quoted;
  row->at += inside;
  for (; row->at < size; row->at++) {
    char c = bytes[row->at];
    if (row->at - of->at > DOCUMENT_MOST) return too_long(of, problem);
    if (inside && c == '"') {
      if (row->at + 1 == size || bytes[row->at + 1] != '"') {
        inside = false;
        continue;
      }
      row->at++;
    } else if (!inside &&
               (c == of->between || c == '\n' || (c == '\r' && row->at + 1 < size && bytes[row->at + 1] == '\n'))) {
      break;
    } else if (!inside && (row->quoted || c == '"')) {
      return documents_bad(of, row->line, (int64_t)row->at - row->begin + 1, "a quote within a cell",
                           "quote the whole cell, and write each quote in it twice", problem);
    }
    if (c == '\n') row->line++, row->begin = (int64_t)row->at + 1;
    if (stored && !put(of, c, problem)) return false;
  }
  if (inside) return documents_bad(of, line, column, "a quoted cell does not end", "close it with a quote", problem);
  *last = row->at >= size || bytes[row->at] != of->between;
  if (!*last)
    row->at++;
  else if (row->at < size)
    row->at += bytes[row->at] == '\r' ? 2 : 1;
  return true;
}

/* ---- Rows of a CSV as records ---- */

/* Line and column of the newest row's cell of a name; as they are where it has none. */
static void find_cell(const struct documents *of, const char *name, int64_t *line, int64_t *column) {
  struct documents copy = *of;
  struct row row = {.at = of->record_start, .line = of->record_line, .begin = (int64_t)of->record_start};
  struct problem ignored;
  bool last = false;
  copy.at = of->record_start;
  for (size_t i = 0; !last && i < json_array_size(of->names); i++) {
    int64_t at_line = row.line, at_column = (int64_t)row.at - row.begin + 1;
    bool is_wanted = strcmp(json_string_value(json_array_get(of->names, i)), name) == 0;
    if (is_wanted) *line = at_line, *column = at_column;
    if (is_wanted || !read_cell(&copy, &row, false, &last, &ignored)) return;
  }
}

/* The text that is made of the record, which began in `line`. */
static bool take_made(struct documents *of, int64_t line, struct problem *problem) {
  struct made_text made = {0};
  struct problem why = {0};
  if (!of->selector.make(of->selector.context, of->record, &made, &why)) {
    int64_t column = 0;
    if (of->selector.is_table && made.field != NULL) find_cell(of, made.field, &line, &column);
    return documents_bad(of, line, column, why.what, why.help, problem);
  }
  of->text = made.text;
  of->length = made.length;
  of->ranges = made.ranges;
  of->n_ranges = made.n_ranges;
  return true;
}

/* A new object for a record, or the list of the header's names. */
static bool begin_record(struct documents *of, bool is_header, struct problem *problem) {
  json_decref(of->record);
  of->record = json_object();
  if (is_header) json_decref(of->names);
  if (is_header) of->names = json_array();
  return (of->record != NULL && of->names != NULL) || rt_problem(problem, "%s: no memory for a record", of->path);
}

/* The cell that was read becomes a name of the header, or a value of the record. `line` and `at` say where it is. */
static bool take_cell(struct documents *of, bool is_header, int column, int64_t line, int64_t at,
                      struct problem *problem) {
  json_t *value = json_stringn(of->length > 0 ? of->cell : "", of->length);
  if (value == NULL) return documents_bad(of, line, at, "the cell is not UTF-8", "convert the file to UTF-8", problem);
  const char *name = json_string_value(is_header ? value : json_array_get(of->names, (size_t)column));
  bool twice = name != NULL && json_object_get(of->record, name) != NULL, good = !twice;
  if (good && is_header) good = json_array_append(of->names, value) == 0;
  if (good && name != NULL) good = json_object_set(of->record, name, value) == 0;
  json_decref(value);
  if (twice)
    return documents_bad(of, line, at, "the header has this name twice", "give each column a name of its own", problem);
  return good || rt_problem(problem, "%s: no memory for a record", of->path);
}

/* Reads the cells of a row into of->names, of the header, or into of->record. *found: it has as many as the header. */
static bool read_record(struct documents *of, struct row *row, bool is_header, bool *found, struct problem *problem) {
  bool last = false;
  if (!begin_record(of, is_header, problem)) return false;
  for (of->column = 0; !last; of->column++) {
    int64_t line = row->line, at = (int64_t)row->at - row->begin + 1;
    if (!read_cell(of, row, true, &last, problem) || !take_cell(of, is_header, of->column, line, at, problem))
      return false;
  }
  *found = (size_t)of->column == json_array_size(of->names);
  return true;
}

/* ---- Rows ---- */

/* Reads the cells of a row and stores the one of the column; of the header, finds the column by its name. */
static bool read_cells(struct documents *of, struct row *row, bool is_header, bool *found, struct problem *problem) {
  const char *name = of->selector.name;
  bool last = false;
  *found = false;
  for (int column = 0; !last; column++) {
    bool stored = is_header ? !*found : column == of->column;
    if (!read_cell(of, row, stored, &last, problem)) return false;
    if (!stored || (is_header && (strlen(name) != of->length || memcmp(of->cell, name, of->length) != 0))) continue;
    *found = true;
    of->column = column;
  }
  return true;
}

/* Reads a row. One that reaches the last byte of the window, which may be the first one of "\r\n", is read again with
 * more of the file in it. */
static bool read_row(struct documents *of, bool is_header, bool *found, struct problem *problem) {
  for (;;) {
    struct row row = {.at = of->at, .line = of->line, .begin = (int64_t)of->at};
    of->length = 0;
    bool good = of->selector.kind == TEXT_MADE ? read_record(of, &row, is_header, found, problem)
                                               : read_cells(of, &row, is_header, found, problem);
    if (row.at + 1 >= of->in.size && !of->in.is_last) {
      if (!see_more(of, problem)) return false;
      continue;
    }
    if (!good) return false;
    of->at = row.at;
    of->line = row.line + (row.at > 0 && of->in.bytes[row.at - 1] == '\n');
    return true;
  }
}

static bool read_header(struct documents *of, struct problem *problem) {
  char what[300];
  bool found = false;
  if (of->in.size >= 3 && memcmp(of->in.bytes, "\xef\xbb\xbf", 3) == 0)
    of->at = 3; /* the byte order mark of spreadsheets */
  if (of->at < of->in.size && !read_row(of, true, &found, problem)) return false;
  if (found || of->selector.kind == TEXT_MADE) return true;
  snprintf(what, sizeof what, "the header has no column '%s'", of->selector.name);
  return documents_bad(of, 1, 0, what, "name one of the columns in the first line", problem);
}

static enum document next_row(struct documents *of, struct problem *problem) {
  bool found;
  for (; has_more(of, problem); of->at++) {
    char first = of->in.bytes[of->at];
    if (first != '\n' && first != '\r') break;
    of->line += first == '\n';
  }
  if (of->is_broken) return DOCUMENT_BAD;
  if (of->at == of->in.size) return DOCUMENT_NONE;
  int64_t line = of->line;
  of->record_start = of->at;
  of->record_line = line;
  if (!read_row(of, false, &found, problem)) return DOCUMENT_BAD;
  of->text = of->length > 0 ? of->cell : "";
  if (found && of->selector.kind == TEXT_MADE) return take_made(of, line, problem) ? DOCUMENT_NEXT : DOCUMENT_BAD;
  if (found) return DOCUMENT_NEXT;
  bool more = of->selector.kind == TEXT_MADE && (size_t)of->column > json_array_size(of->names);
  return documents_bad(of, line, 0,
                       more ? "the row has more columns than the header" : "the row has fewer columns than the header",
                       more ? "quote cells with separators in them" : "give each row all columns", problem),
         DOCUMENT_BAD;
}

/* ---- The whole file ---- */

/* All of it must be in the window, as a tokenizer looks at a text from its beginning to its end. */
static enum document next_whole(struct documents *of, struct problem *problem) {
  if (of->text != NULL) return DOCUMENT_NONE;
  while (!of->in.is_last) {
    if (of->in.size > DOCUMENT_MOST) {
      rt_problem(problem, "%s: it unpacks to more than the %d bytes that a compressed text may have", of->path,
                 DOCUMENT_MOST);
      rt_help(problem, "unpack it first (gzip -d, zstd -d), or write its texts as records of JSON Lines");
      return DOCUMENT_BAD;
    }
    if (!see_more(of, problem)) return DOCUMENT_BAD;
  }
  of->text = of->in.bytes;
  of->length = of->at = of->in.size;
  return DOCUMENT_NEXT;
}

/* ---- All kinds ---- */

static bool is_csv(const struct documents *of) {
  return of->selector.kind == TEXT_COLUMN || (of->selector.kind == TEXT_MADE && of->selector.is_table);
}

/* Whether the name of the content has this ending, before the one that a compressed file has. */
static bool is_called(const char *path, const char *ending) {
  static const char *const packed[] = {"", ".gz", ".zst"};
  char whole[32];
  for (int i = 0; i < 3; i++) {
    snprintf(whole, sizeof whole, "%s%s", ending, packed[i]);
    if (has_ending(path, whole)) return true;
  }
  return false;
}

/* Whether the content begins as a tar archive does. */
static bool is_shard(struct documents *of, struct problem *problem) {
  while (of->in.size < SHARD_HEADER && !of->in.is_last)
    if (!see_more(of, problem)) return false;
  return shard_is(of->in.bytes, of->in.size);
}

bool documents_begin(struct documents *documents, const char *path, const char *bytes, size_t size,
                     struct text_selector selector, struct problem *problem) {
  *documents = (struct documents){
      .selector = selector, .path = path, .line = 1, .between = is_called(path, ".tsv") ? '\t' : ','};
  documents->is_broken = !window_open(&documents->in, path, bytes, size, selector.as_is, problem);
  if (documents->is_broken) return false;
  if (!selector.as_is && is_shard(documents, problem)) {
    window_close(&documents->in);
    return documents_begin_samples(documents, bytes, size, problem);
  }
  if (documents->is_broken) return false;
  return selector.kind == TEXT_WHOLE ||
         (documents_check_records(path, documents->in.bytes, documents->in.size, problem) &&
          (!is_csv(documents) || read_header(documents, problem)));
}

uint64_t documents_position(const struct documents *documents) {
  if (documents->shard != NULL) return shard_position(documents->shard);
  return documents->in.before + documents->at;
}

size_t documents_done(const struct documents *documents) {
  if (documents->shard != NULL) return shard_done(documents->shard);
  return window_done(&documents->in, documents->at);
}

/* Goes to byte `at` of the window, and counts the lines before it. */
static void pass(struct documents *documents, size_t at) {
  const char *end = documents->in.bytes + documents->at, *stop = documents->in.bytes + at;
  for (; end < stop && (end = memchr(end, '\n', (size_t)(stop - end))) != NULL; end++) documents->line++;
  documents->at = at;
}

bool documents_seek(struct documents *documents, uint64_t position, struct problem *problem) {
  if (documents->shard != NULL) return shard_seek(documents->shard, position, problem);
  while (position > documents->in.before + documents->in.size) {
    pass(documents, documents->in.size);
    if (documents->in.is_last) return rt_problem(problem, "%s: it has no byte %" PRIu64, documents->path, position);
    if (!see_more(documents, problem)) return false;
  }
  pass(documents, (size_t)(position - documents->in.before));
  return true;
}

static enum document next(struct documents *documents, struct problem *problem) {
  if (documents->shard != NULL) return documents_next_sample(documents, problem);
  if (is_csv(documents)) return next_row(documents, problem);
  return documents->selector.kind == TEXT_WHOLE ? next_whole(documents, problem) : next_record(documents, problem);
}

/* Passes over the bad record that began last. False with a problem where the file cannot be read on. */
static bool skip(struct documents *documents, struct problem *problem) {
  if (documents->selector.skipped->count++ == 0) documents->selector.skipped->first = *problem;
  if (documents->shard != NULL || documents->at != documents->record_start) return true;
  for (;;) {
    const char *from = documents->in.bytes + documents->at;
    const char *end = memchr(from, '\n', documents->in.size - documents->at);
    documents->at = end != NULL ? (size_t)(end - documents->in.bytes) + 1 : documents->in.size;
    if (end != NULL || documents->in.is_last) break;
    if (!see_more(documents, problem)) return false;
  }
  documents->line++;
  return true;
}

/* Texts of JSON are UTF-8 when they are read; a cell's is not looked at before it is encoded, which is too late to pass
 * over it. */
static bool is_text(const struct documents *documents, struct problem *problem) {
  size_t at;
  return documents->selector.kind != TEXT_COLUMN || is_utf8(documents->text, documents->length, &at) ||
         documents_bad(documents, documents->record_line, 0, "the text is not UTF-8", "convert the file to UTF-8",
                       problem);
}

enum document documents_next(struct documents *documents, struct problem *problem) {
  if (documents->selector.skipped == NULL) return next(documents, problem);
  for (;;) {
    enum document found = next(documents, problem);
    if (found == DOCUMENT_NEXT && !is_text(documents, problem)) found = DOCUMENT_BAD;
    if (found != DOCUMENT_BAD || documents->is_broken) return found;
    if (!skip(documents, problem)) return DOCUMENT_BAD;
  }
}

void documents_end(struct documents *documents) {
  json_decref(documents->record);
  json_decref(documents->names);
  json_field_end(&documents->field);
  free(documents->cell);
  shard_free(documents->shard);
  window_close(&documents->in);
  *documents = (struct documents){0};
}
