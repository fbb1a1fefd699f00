#include "gen/format/format.h"

#include <string.h>

#include "gen/format/token.h"
#include "gen/format/wrap.h"

/* Where the statements of a text are read. */
struct reader {
  struct arena *arena;
  struct tokens tokens;
  int at;
  int closed; /* the token that ends the latest line: no blank line follows where it opens a block */
};

enum scope { SCOPE_FILE, SCOPE_FIELDS, SCOPE_BODY };

static const struct token *token_at(const struct reader *r, int index) {
  static const struct token none = {.text = "", .match = -1};
  return index < r->tokens.count ? &r->tokens.items[index] : &none;
}

static bool is(const struct reader *r, int index, const char *text) {
  return token_is(token_at(r, index), text);
}

static bool is_any(const struct reader *r, int index, const char *const *texts) {
  return token_is_any(token_at(r, index), texts);
}

static bool is_directive(const struct token *token) {
  return token->kind == TOKEN_DIRECTIVE || token->kind == TOKEN_VERBATIM;
}

/* A line of its own: a directive, what may not change, or a comment that no code follows. */
static bool stands_alone(const struct reader *r, int index) {
  const struct token *token = token_at(r, index);
  if (index >= r->tokens.count) return false;
  if (is_directive(token)) return true;
  const bool last = index + 1 >= r->tokens.count || token_at(r, index + 1)->newlines > 0;
  return token->kind == TOKEN_COMMENT && token->newlines > 0 && last;
}

/* ---- Lines ---- */

/* How many columns the tokens take on one line; more than a line has where they do not fit on one. */
static int columns_of(const struct reader *r, int first, int end) {
  int columns = 0;
  if (end > r->tokens.count) end = r->tokens.count; /* after what the text does not close */
  for (int i = first; i < end && columns <= FORMAT_COLUMNS; i++) {
    const struct token *token = &r->tokens.items[i];
    if (i > first && token_must_break(token)) return FORMAT_COLUMNS + 1;
    columns += token_width(token) + (i > first && token->space);
  }
  return columns;
}

/* The end of a line that goes up to `end`, with the comment after it. */
static int with_comment(struct reader *r, int end) {
  struct token *token = end < r->tokens.count ? &r->tokens.items[end] : NULL;
  if (token == NULL || token->kind != TOKEN_COMMENT || token->newlines > 0) return end;
  if (end + 1 < r->tokens.count && token_at(r, end + 1)->newlines == 0) return end;
  token->trailing = true;
  return end + 1;
}

static void begin(struct reader *r, int first, int column) {
  struct token *token = &r->tokens.items[first];
  const bool blank = token->newlines > 1 && first > 0 && !is(r, first, "}") && !is(r, r->closed, "{");
  token->breaks = first == 0 ? 0 : 1 + blank;
  token->column = column;
}

/* Lays out the tokens from `line.first` to before `line.end`, and continues after them. */
static void put(struct reader *r, struct line line) {
  if (line.first >= line.end) return;
  begin(r, line.first, line.indent);
  const bool comment = token_at(r, line.end - 1)->trailing;
  const int code = line.end - comment;
  if (line.indent + columns_of(r, line.first, code) > FORMAT_COLUMNS) wrap_line(r->arena, &r->tokens, &line);
  for (int i = line.first + 1; i < line.end; i++) {
    struct token *token = &r->tokens.items[i];
    if (token->breaks > 0) continue;
    const struct token *before = token - 1;
    token->column = before->column + token_width(before) + (token->space || token->trailing);
  }
  r->closed = code - 1;
  r->at = line.end;
}

static void put_alone(struct reader *r, int indent) {
  const bool directive = token_at(r, r->at)->kind == TOKEN_DIRECTIVE;
  put(r, (struct line){.first = r->at, .end = r->at + 1, .indent = directive ? 0 : indent});
}

/* ---- Statements ---- */

static void statement(struct reader *r, int indent, enum scope scope);
static void statements(struct reader *r, int indent, enum scope scope);

/* The token after the one at `index`, or after its bracket's contents. */
static int past(const struct reader *r, int index) {
  const int match = token_at(r, index)->match;
  return match > index ? match + 1 : index + 1;
}

static bool has_any(const struct reader *r, int first, int end, const char *const *texts) {
  for (int i = first; i < end; i++)
    if (is_any(r, i, texts)) return true;
  return false;
}

/* A list that ends in a comma, or an enumeration that is too long for a line: each item has a line of its own. */
static bool is_long_list(const struct reader *r, int open) {
  const int close = token_at(r, open)->match;
  return close > open && is(r, close - 1 - (token_at(r, close - 1)->kind == TOKEN_COMMENT), ",");
}

static bool is_enum(const struct reader *r, int first, int open) {
  return !is(r, open - 1, ")") && has_any(r, first, open, (const char *const[]){"enum", NULL});
}

/* Whether the brace at `open` is that of a block, in a statement that begins at `first`. */
static bool opens_block(const struct reader *r, int first, int open, enum scope scope) {
  static const char *const types[] = {"struct", "union", "static", "const", "typedef", NULL};
  if (is_enum(r, first, open) || has_any(r, first, open, (const char *const[]){"=", NULL})) return false;
  return scope != SCOPE_BODY || (is_any(r, first, types) && !is(r, open - 1, ")"));
}

static void items(struct reader *r, int close, int indent, int depth);

/* The list that opens at `open` in a line, which then continues at the closing brace. */
static void long_list(struct reader *r, struct line *line, int open) {
  const int close = token_at(r, open)->match;
  const int deeper = is_enum(r, line->first, open) ? FORMAT_INDENT : FORMAT_CONTINUATION;
  line->end = with_comment(r, open + 1);
  put(r, *line);
  items(r, close, line->indent + deeper, line->depth + 1);
  line->first = close;
}

/* The block that opens at `open` in a line, which then continues at the closing brace. Whether the statement continues
 * after that: it does where the block has the members of a type. */
static bool block(struct reader *r, struct line *line, int open) {
  const bool function = is(r, open - 1, ")");
  const bool fields = !function && has_any(r, line->first, open, (const char *const[]){"struct", "union", NULL});
  const bool flat =
      !function && !fields && has_any(r, line->first, open, (const char *const[]){"namespace", "extern", NULL});
  line->end = with_comment(r, open + 1);
  put(r, *line);
  statements(r, line->indent + (flat ? 0 : FORMAT_INDENT), flat ? SCOPE_FILE : fields ? SCOPE_FIELDS : SCOPE_BODY);
  line->first = r->at;
  return fields;
}

/* A statement from the line's first token on, through the semicolon that ends it; or an item of a list, through its
 * comma. */
static void rest(struct reader *r, struct line line, enum scope scope, bool item) {
  const char *const end = item                                                                    ? ","
                          : is_any(r, line.first, (const char *const[]){"case", "default", NULL}) ? ":"
                                                                                                  : ";";
  int i = line.first + is(r, line.first, "}");
  while (i < r->tokens.count && !is(r, i, "}") && !is_directive(token_at(r, i))) {
    const bool last = is(r, i, end), brace = is(r, i, "{") && token_at(r, i)->match > i;
    const bool wide =
        brace && is_enum(r, line.first, i) && line.indent + columns_of(r, line.first, past(r, i) + 1) > FORMAT_COLUMNS;
    if (wide || (brace && is_long_list(r, i))) {
      long_list(r, &line, i);
      i = line.first + 1;
    } else if (brace && !item && past(r, i) > i + 2 && opens_block(r, line.first, i, scope)) {
      const bool continues = block(r, &line, i);
      i = line.first + 1;
      if (!continues) break;
    } else {
      i = past(r, i);
      if (last || (brace && !item && opens_block(r, line.first, i - 2, scope))) break;
    }
  }
  line.end = with_comment(r, i > line.first ? i : i + 1);
  put(r, line);
}

/* The items of a list up to its closing brace. */
static void items(struct reader *r, int close, int indent, int depth) {
  while (r->at < close) {
    if (stands_alone(r, r->at))
      put_alone(r, indent);
    else
      rest(r, (struct line){.first = r->at, .indent = indent, .depth = depth}, SCOPE_BODY, true);
  }
}

static const char *const controls[] = {"if", "for", "while", "switch", "else", "do", NULL};

/* The end of the statement at `body`, where it fits on the line of the head at `first`, or -1. */
static int short_body(const struct reader *r, int first, int body, int indent) {
  if (!is_any(r, first, (const char *const[]){"if", "for", "while", NULL}) || is_any(r, body, controls)) return -1;
  if (is(r, body, ";") || stands_alone(r, body) || token_at(r, body)->kind == TOKEN_COMMENT) return -1;
  int end = body;
  for (; end < r->tokens.count && !is(r, end, ";"); end = past(r, end))
    if (is_directive(token_at(r, end)) || is_long_list(r, end)) return -1;
  if (is(r, first, "if") && is(r, end + 1, "else")) return -1;
  return end < r->tokens.count && indent + columns_of(r, first, end + 1) <= FORMAT_COLUMNS ? end + 1 : -1;
}

/* The token after the head of a loop or condition whose first token, or the brace before it, is at `first`. */
static int head_end(const struct reader *r, int first) {
  int i = first + is(r, first, "}");
  if (is(r, i, "do")) return i + 1;
  if (is(r, i, "else") && !is(r, i + 1, "if")) return i + 1;
  while (i < r->tokens.count && !is(r, i, "(")) i++;
  return past(r, i);
}

/* A loop, a condition or what is else, with the branches that follow. */
static void control(struct reader *r, int first, int indent) {
  const int head = head_end(r, first), body_end = is(r, head, "{") ? -1 : short_body(r, first, head, indent);
  if (is(r, head, "{")) {
    put(r, (struct line){.first = first, .end = with_comment(r, head + 1), .indent = indent});
    statements(r, indent + FORMAT_INDENT, SCOPE_BODY);
    const int close = r->at;
    if (is(r, close + 1, "else"))
      control(r, close, indent);
    else if (is(r, first, "do"))
      rest(r, (struct line){.first = close, .indent = indent}, SCOPE_BODY, false);
    else
      put(r, (struct line){.first = close, .end = with_comment(r, close + 1), .indent = indent});
  } else if (body_end > 0) {
    put(r, (struct line){.first = first, .end = with_comment(r, body_end), .indent = indent});
  } else {
    put(r, (struct line){.first = first, .end = with_comment(r, head), .indent = indent});
    while (stands_alone(r, r->at)) put_alone(r, indent + FORMAT_INDENT);
    statement(r, indent + FORMAT_INDENT, SCOPE_BODY);
    if (is(r, r->at, "else")) control(r, r->at, indent);
  }
}

static void statement(struct reader *r, int indent, enum scope scope) {
  const int first = r->at;
  if (stands_alone(r, first)) {
    put_alone(r, indent);
  } else if (is(r, first, "case") || is(r, first, "default")) {
    rest(r, (struct line){.first = first, .indent = indent - FORMAT_INDENT}, SCOPE_BODY, false);
  } else if (is_any(r, first, controls)) {
    control(r, first, indent);
  } else if (is(r, first, "{")) {
    put(r, (struct line){.first = first, .end = with_comment(r, first + 1), .indent = indent});
    statements(r, indent + FORMAT_INDENT, SCOPE_BODY);
    put(r, (struct line){.first = r->at, .end = with_comment(r, r->at + 1), .indent = indent});
  } else {
    rest(r, (struct line){.first = first, .indent = indent, .declaration = scope == SCOPE_FILE}, scope, false);
  }
}

/* Up to the brace that closes them. */
static void statements(struct reader *r, int indent, enum scope scope) {
  while (r->at < r->tokens.count && !is(r, r->at, "}")) statement(r, indent, scope);
}

/* ---- Comments after code ---- */

/* Comments after code on consecutive lines are in one column, as long as they all fit. */
static void align_comments(struct tokens *tokens) {
  int group[256], count = 0, low = 0, high = 0, line = 0, latest = -2;
  for (int i = 0; i <= tokens->count; i++) {
    struct token *token = i < tokens->count ? &tokens->items[i] : NULL;
    if (token != NULL) line += token->breaks;
    if (token != NULL && !token->trailing) continue;
    const int column = token != NULL ? token->column : 0,
              most = token != NULL ? FORMAT_COLUMNS - token_width(token) : 0;
    if (token == NULL || line != latest + 1 || column > high || most < low || count == 256) {
      for (int k = 0; k < count; k++) tokens->items[group[k]].column = low;
      count = 0;
      low = column;
      high = most;
    }
    if (token == NULL) break;
    group[count++] = i;
    low = column > low ? column : low;
    high = most < high ? most : high;
    latest = line;
  }
}

/* ---- Output ---- */

struct writer {
  char *text;
  size_t length, capacity;
  struct arena *arena;
  struct format_move *moves;
  int count, moves_capacity;
  bool with_moves;
  int line, column; /* column: of the line's end; what is after a break within a token does not count */
};

static void write(struct writer *w, const char *bytes, size_t length) {
  if (w->length + length > w->capacity) {
    const size_t capacity = 2 * (w->length + length);
    char *text = arena_alloc(w->arena, capacity + 1);
    if (w->length > 0) memcpy(text, w->text, w->length);
    w->text = text;
    w->capacity = capacity;
  }
  memcpy(w->text + w->length, bytes, length);
  w->length += length;
}

static void write_blanks(struct writer *w, int count) {
  for (; count > 0; count--) write(w, " ", 1);
}

static void write_break(struct writer *w) {
  write(w, "\n", 1);
  w->line++;
  w->column = 0;
}

static void add_move(struct writer *w, size_t from, size_t length) {
  if (!w->with_moves) return;
  w->moves = arena_grow(w->arena, w->moves, w->count, &w->moves_capacity, sizeof *w->moves);
  w->moves[w->count++] = (struct format_move){from, length, w->line};
}

static void write_move(struct writer *w, size_t from, const char *bytes, int length) {
  add_move(w, from, (size_t)length);
  write(w, bytes, (size_t)length);
}

/* Where a comment's line ends that has columns for so many columns: between two words if it is longer, and not before
 * the mark that ends the comment. */
static const char *comment_break(const char *at, const char *stop, int columns) {
  if (stop - at <= columns) return stop;
  const char *least = at + 3, *found = at + columns;
  while (found > least && (*found != ' ' || (stop - found == 3 && found[1] == '*'))) found--;
  return found > least ? found : stop;
}

/* A line of a comment; what does not fit in a comment's only line continues in lines after it. */
static void write_comment_line(struct writer *w, const char *source, const struct token *token, const char *at,
                               const char *stop) {
  const bool keeps_break = token->trailing || stop < token->text + token->length || at > token->text;
  for (bool first = true; at < stop; first = false) {
    if (!first) {
      write_break(w);
      write_blanks(w, token->column + 1);
      write(w, "* ", 2);
      w->column = token->column + 3;
    }
    const char *end = keeps_break ? stop : comment_break(at, stop, FORMAT_COLUMNS - w->column);
    write_move(w, (size_t)(at - source), at, (int)(end - at));
    at = end + (end < stop);
  }
}

/* A comment: the lines after its first one move with it. */
static void write_comment(struct writer *w, const char *source, const struct token *token) {
  const char *at = token->text, *end = at + token->length;
  for (bool first = true; at < end; first = false) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL) stop = end;
    if (!first) {
      write_break(w);
      while (at < stop && *at == ' ') at++;
      if (at < stop) write_blanks(w, token->column + (*at == '*'));
    }
    const char *visible = stop;
    while (visible > at && visible[-1] == ' ') visible--;
    write_comment_line(w, source, token, at, visible);
    at = stop < end ? stop + 1 : end;
  }
}

/* A token that is no comment, as it was written: of a directive, or of what is not formatted, each line moves. */
static void write_lines(struct writer *w, const char *source, const struct token *token) {
  const char *at = token->text, *end = at + token->length;
  for (const char *stop; (stop = memchr(at, '\n', (size_t)(end - at))) != NULL; at = stop + 1) {
    write_move(w, (size_t)(at - source), at, (int)(stop - at));
    write_break(w);
  }
  write_move(w, (size_t)(at - source), at, (int)(end - at));
}

static void write_token(struct writer *w, const char *source, const struct token *token, const struct token *before) {
  for (int i = 0; i < token->breaks; i++) {
    if (i == 1) {
      const char *blank = before->text + before->length;
      while (*blank != '\n') blank++;
      add_move(w, (size_t)(blank + 1 - source), 1);
    }
    write_break(w);
  }
  write_blanks(w, token->column - w->column);
  w->column = token->column;
  if (token->kind == TOKEN_COMMENT)
    write_comment(w, source, token);
  else
    write_lines(w, source, token);
  w->column = token->column + token_width(token);
}

struct format_output format_program(struct arena *arena, const char *text, size_t length, bool with_moves) {
  struct reader reader = {.arena = arena, .tokens = format_tokens(arena, text, length)};
  while (reader.at < reader.tokens.count) {
    const int at = reader.at;
    statements(&reader, 0, SCOPE_FILE);
    if (reader.at == at) put(&reader, (struct line){.first = at, .end = at + 1});
  }
  align_comments(&reader.tokens);
  struct writer writer = {.arena = arena, .with_moves = with_moves, .line = 1, .capacity = 2 * length};
  writer.text = arena_alloc(arena, writer.capacity + 1);
  for (int i = 0; i < reader.tokens.count; i++)
    write_token(&writer, text, &reader.tokens.items[i], i > 0 ? &reader.tokens.items[i - 1] : NULL);
  write_break(&writer);
  write(&writer, "", 1);
  return (struct format_output){writer.text, writer.length - 1, writer.moves, writer.count};
}
