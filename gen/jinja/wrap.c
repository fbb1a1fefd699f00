/* Wrapping of one line, as Python's textwrap does it. */
#include "gen/jinja/scan.h"
#include "gen/jinja/support.h"

static bool is_blank(char c) {
  return c == ' ' || (c >= 9 && c <= 13);
}

static bool is_letter(const char *bytes, size_t length, size_t at) {
  int size;
  if (at >= length) return false;
  uint32_t code = jj_utf8_decode(bytes + at, length - at, &size);
  return jj_is_alpha_code(code) || code == '_';
}

static bool is_word(const char *bytes, size_t length, size_t at) {
  return is_letter(bytes, length, at) || (at < length && bytes[at] >= '0' && bytes[at] <= '9');
}

/* May a line end after the hyphen at `at`? textwrap wants two letters on each side, or letter-hyphen. */
static bool breaks_after(const char *bytes, size_t length, size_t start, size_t at) {
  if (at < start + 2 || !is_letter(bytes, length, at - 1)) return false;
  bool before = is_letter(bytes, length, at - 2) || (bytes[at - 2] == '-' && at >= start + 3);
  bool after = is_letter(bytes, length, at + 1) &&
               (is_letter(bytes, length, at + 2) || (at + 2 < length && bytes[at + 2] == '-'));
  return before && after;
}

/* The end of the piece that begins at `at`: a run of blanks, a word, or a word up to a hyphen or around a dash. */
static size_t piece_end(const char *bytes, size_t length, size_t at, bool hyphens) {
  size_t end = at;
  if (is_blank(bytes[at])) {
    while (end < length && is_blank(bytes[end])) end++;
    return end;
  }
  size_t dashes = strspn(bytes + at, "-");
  if (hyphens && dashes >= 2 && at > 0 && !is_blank(bytes[at - 1]) && is_word(bytes, length, at + dashes))
    return at + dashes;
  for (end = at; end < length && !is_blank(bytes[end]); end++) {
    if (!hyphens || bytes[end] != '-') continue;
    size_t run = strspn(bytes + end, "-");
    bool dash = run >= 2 && end > at && is_word(bytes, length, end + run) && strchr("\"'&.,?!", bytes[end - 1]) == NULL;
    bool dash_after_mark = run >= 2 && end > at && is_word(bytes, length, end + run);
    if (dash || dash_after_mark) return end;
    if (run == 1 && breaks_after(bytes, length, at, end)) return end + 1;
    end += run - 1;
  }
  return end;
}

struct wrap {
  struct run *run;
  struct jinja_list *lines;
  const char *bytes;
  size_t line_start, line_end; /* the line so far; empty: start == end */
  int64_t width, used;
  int first; /* how many lines there were before */
  bool break_words, break_hyphens;
  bool keep_blank; /* at the line's end: textwrap drops the last piece, which was an empty one */
};

static void flush(struct wrap *w) {
  size_t end = w->line_end;
  while (!w->keep_blank && end > w->line_start && is_blank(w->bytes[end - 1])) end--;
  if (end > w->line_start)
    jj_push(w->run->pool, w->lines, jj_copy_text(w->run, w->bytes + w->line_start, end - w->line_start));
  w->line_start = w->line_end;
  w->used = 0;
  w->keep_blank = false;
}

/* A word that is wider than a line is cut to what fits. */
static size_t cut(const struct wrap *w, size_t at, size_t end) {
  size_t cut_end = at + jj_utf8_offset(w->bytes + at, end - at, (size_t)(w->width - w->used));
  if (!w->break_hyphens || cut_end >= end) return cut_end;
  for (size_t i = cut_end; i > at + 1; i--) {
    if (w->bytes[i - 1] != '-') continue;
    for (size_t j = at; j < i - 1; j++) {
      if (w->bytes[j] != '-') return i;
    }
  }
  return cut_end;
}

/* Adds the piece [at, end) of `size` characters, or the part of it that fits; returns where to continue. */
static size_t add_piece(struct wrap *w, size_t at, size_t end, int64_t size) {
  bool empty = w->used == 0;
  if (empty) w->line_start = w->line_end = at;
  if (empty && is_blank(w->bytes[at]) && w->lines->count > w->first) return end; /* only the first line begins so */
  if (w->used + size <= w->width) {
    w->line_end = end;
    w->used += size;
    return end;
  }
  if (size > w->width && w->break_words) {
    w->keep_blank = w->used == w->width;
    w->line_end = at = cut(w, at, end);
  } else if (size > w->width && empty) {
    w->line_end = at = end;
  }
  flush(w);
  return at;
}

void jj_wrap_line(struct run *run, const char *bytes, size_t length, int64_t width, bool break_words,
                  bool break_hyphens, struct jinja_list *lines) {
  struct wrap w = {.run = run,
                   .lines = lines,
                   .bytes = bytes,
                   .width = width,
                   .first = lines->count,
                   .break_words = break_words,
                   .break_hyphens = break_hyphens};
  for (size_t at = 0; at < length;) {
    size_t end = piece_end(bytes, length, at, break_hyphens);
    jj_spend(run, 1);
    at = add_piece(&w, at, end, (int64_t)jj_utf8_count(bytes + at, end - at));
  }
  flush(&w);
}
