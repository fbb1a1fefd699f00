#include "gen/base/diag.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/text.h"
#include "runtime/base/terminal.h"

struct diagnostics diagnostics_in(struct arena *arena) {
  return (struct diagnostics){.arena = arena};
}

void diag_add_source(struct diagnostics *diags, const char *file, const char *text) {
  diags->sources =
      arena_grow(diags->arena, diags->sources, diags->n_sources, &diags->sources_capacity, sizeof *diags->sources);
  diags->sources[diags->n_sources++] = (struct source){file, text};
}

static void add(struct diagnostics *diags, enum severity severity, struct location where, const char *format,
                va_list args) {
  struct diagnostic item = {severity, where, arena_vprintf(diags->arena, format, args)};
  ARENA_PUSH(diags->arena, *diags, item);
  if (severity == SEVERITY_ERROR) diags->errors++;
}

void diag_error(struct diagnostics *diags, struct location where, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(diags, SEVERITY_ERROR, where, format, args);
  va_end(args);
}

void diag_warning(struct diagnostics *diags, struct location where, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(diags, SEVERITY_WARNING, where, format, args);
  va_end(args);
}

void diag_note(struct diagnostics *diags, struct location where, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(diags, SEVERITY_NOTE, where, format, args);
  va_end(args);
}

void diag_help(struct diagnostics *diags, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(diags, SEVERITY_HELP, (struct location){0}, format, args);
  va_end(args);
}

const char *diag_first_error(struct arena *arena, const struct diagnostics *diags) {
  for (int i = 0; i < diags->count; i++)
    if (diags->items[i].severity == SEVERITY_ERROR) return arena_string(arena, diags->items[i].message);
  return "no error was reported";
}

static const char *source_text(const struct diagnostics *diags, const char *file) {
  for (int i = 0; i < diags->n_sources; i++)
    if (strcmp(diags->sources[i].file, file) == 0) return diags->sources[i].text;
  return NULL;
}

/* The start of a line (counted from 1) and its length without the line end; NULL after the last one. */
static const char *find_line(const char *text, int line, int *length) {
  while (line > 1 && *text != '\0') {
    const char *end = strchr(text, '\n');
    if (end == NULL) return NULL;
    text = end + 1;
    line--;
  }
  *length = (int)strcspn(text, "\r\n");
  return text;
}

struct palette {
  const char *bold, *error, *note, *caret, *reset;
};

enum { GUTTER = 8, LONGEST_EXCERPT = 240 };

/* The part of a line that a terminal has room for, around the place that is meant: its bytes from *from on. */
static int part_of_line(struct location where, int length, FILE *out, int *from) {
  const int room = rt_terminal_columns(fileno(out)) - GUTTER, at = where.column - 1;
  *from = 0;
  if (room < GUTTER || length <= room) return length;
  if (at > room / 2) *from = at + room / 2 < length ? at - room / 2 : length - room;
  return room;
}

static bool continues_letter(char byte) {
  return ((unsigned char)byte & 0xc0) == 0x80;
}

static void print_excerpt(const struct diagnostics *diags, struct location where, FILE *out,
                          const struct palette *colours) {
  if (where.file == NULL || where.line < 1) return;
  const char *text = source_text(diags, where.file);
  int length = 0, from;
  const char *line = text == NULL ? NULL : find_line(text, where.line, &length);
  if (line == NULL || length > LONGEST_EXCERPT) return;
  int end = part_of_line(where, length, out, &from);
  end += from;
  while (from < end && continues_letter(line[from])) from++;
  while (end < length && continues_letter(line[end])) end++;
  fprintf(out, "%5d | ", where.line);
  for (int i = from; i < end; i++) fputc((unsigned char)line[i] < ' ' && line[i] != '\t' ? '?' : line[i], out);
  fputc('\n', out);
  if (where.column < 1 || where.column > length + 1) return;
  fprintf(out, "      | ");
  for (int i = from; i < where.column - 1; i++) {
    if (continues_letter(line[i])) continue; /* the rest of a UTF-8 character takes no column */
    fputc(line[i] == '\t' ? '\t' : ' ', out);
  }
  fprintf(out, "%s^", colours->caret);
  for (int i = 1; i < where.length && where.column - 1 + i < end; i++)
    if (!continues_letter(line[where.column - 1 + i])) fputc('~', out);
  fprintf(out, "%s\n", colours->reset);
}

static void print_one(const struct diagnostics *diags, const struct diagnostic *item, FILE *out,
                      const struct palette *colours) {
  static const char *const names[] = {"error", "warning", "note", "help"};
  struct text where = text_in(diags->arena);
  if (item->severity == SEVERITY_HELP) {
    rt_print(out, "    %shelp:%s %s\n", colours->note, colours->reset, item->message);
    return;
  }
  if (item->where.file != NULL) text_printf(&where, "%s:", item->where.file);
  if (item->where.line > 0) text_printf(&where, "%d:", item->where.line);
  if (item->where.line > 0 && item->where.column > 0) text_printf(&where, "%d:", item->where.column);
  if (item->where.file == NULL) text_puts(&where, "accel-gen:");
  rt_print(out, "%s%s%s %s%s:%s %s\n", colours->bold, text_string(&where), colours->reset,
           item->severity == SEVERITY_NOTE ? colours->note : colours->error, names[item->severity], colours->reset,
           item->message);
  print_excerpt(diags, item->where, out, colours);
}

/* A diagnostic with the notes after it, and its index in the order of arrival. */
struct group {
  int first, count;
  const struct diagnostic *head;
};

static int compare_groups(const void *left, const void *right) {
  const struct group *a = left, *b = right;
  const struct location *p = &a->head->where, *q = &b->head->where;
  bool same_file = p->file != NULL && q->file != NULL && strcmp(p->file, q->file) == 0;
  if (same_file && p->line != q->line) return p->line < q->line ? -1 : 1;
  if (same_file && p->column != q->column) return p->column < q->column ? -1 : 1;
  return a->first < b->first ? -1 : a->first > b->first;
}

void diag_print(const struct diagnostics *diags, FILE *out, bool colour) {
  static const struct palette plain = {"", "", "", "", ""};
  static const struct palette bright = {"\033[1m", "\033[1;31m", "\033[1;36m", "\033[1;32m", "\033[0m"};
  const struct palette *colours = colour ? &bright : &plain;
  struct group *groups = arena_alloc(diags->arena, ((size_t)diags->count + 1) * sizeof *groups);
  int n = 0;
  for (int i = 0; i < diags->count; i++) {
    bool head = diags->items[i].severity <= SEVERITY_WARNING || n == 0;
    if (head)
      groups[n++] = (struct group){i, 1, &diags->items[i]};
    else
      groups[n - 1].count++;
  }
  qsort(groups, (size_t)n, sizeof *groups, compare_groups);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < groups[i].count; k++) print_one(diags, &diags->items[groups[i].first + k], out, colours);
  if (diags->errors > 0) fprintf(out, "%d error%s\n", diags->errors, diags->errors == 1 ? "" : "s");
}

static int lower(char letter) {
  return tolower((unsigned char)letter);
}

/* How many letters are put in, left out, taken for others or for their neighbours between two words. Case is none of
 * these. Bounded for long words. */
static int edit_distance(const char *a, const char *b) {
  enum { LONGEST = 64 };
  int n = (int)strlen(a), m = (int)strlen(b), rows[3][LONGEST + 1] = {{0}};
  if (n >= LONGEST || m >= LONGEST) return LONGEST;
  int *older = rows[0], *old = rows[1], *row = rows[2];
  for (int j = 0; j <= m; j++) row[j] = j;
  for (int i = 1; i <= n; i++) {
    int *spare = older;
    older = old, old = row, row = spare;
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      bool same = lower(a[i - 1]) == lower(b[j - 1]);
      int best = old[j - 1] + !same;
      if (old[j] + 1 < best) best = old[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      row[j] = swapped && older[j - 2] + 1 < best ? older[j - 2] + 1 : best;
    }
  }
  return row[m];
}

const char *nearest_word(const char *word, const char *const *candidates, int count) {
  const char *best = NULL;
  int best_distance = ((int)strlen(word) + 2) / 3 + 1; /* one more than is near enough */
  for (int i = 0; i < count; i++) {
    int distance = edit_distance(word, candidates[i]);
    if (distance < best_distance && distance < (int)strlen(candidates[i])) {
      best = candidates[i];
      best_distance = distance;
    }
  }
  return best;
}
