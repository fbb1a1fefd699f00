#include "gen/jinja/lexer.h"

#include <stdlib.h>
#include <string.h>

#include "gen/jinja/env.h"
#include "gen/jinja/scan.h"

struct lexer {
  struct jinja_env *env;
  struct syntax_fault *fault;
  const char *source;
  size_t length, at;
  int line; /* of line_at, which follows `at` */
  size_t line_at, line_start;
  struct tokens tokens;
  char open[64]; /* the brackets that wait for their partner */
  int open_count;
};

/* Moves the line counter to `at`, which never goes back. */
static void count_lines(struct lexer *lx, size_t at) {
  while (lx->line_at < at) {
    const char *newline = memchr(lx->source + lx->line_at, '\n', at - lx->line_at);
    if (newline == NULL) break;
    lx->line++;
    lx->line_at = lx->line_start = (size_t)(newline - lx->source) + 1;
  }
  if (lx->line_at < at) lx->line_at = at;
}

static _Noreturn void fail_at(struct lexer *lx, size_t at, const char *message) {
  count_lines(lx, at);
  jj_syntax_error(lx->fault, lx->line, (int)(at - lx->line_start) + 1, "%s", message);
}

static struct token *add(struct lexer *lx, enum token_kind kind, size_t at, size_t length) {
  count_lines(lx, at);
  struct token token = {.kind = (uint8_t)kind,
                        .line = lx->line,
                        .column = (int)(at - lx->line_start) + 1,
                        .text = lx->source + at,
                        .length = length};
  ARENA_PUSH(lx->env->arena, lx->tokens, token);
  return &lx->tokens.items[lx->tokens.count - 1];
}

static bool at_text(const struct lexer *lx, size_t at, const char *text) {
  size_t length = strlen(text);
  return lx->length - at >= length && memcmp(lx->source + at, text, length) == 0;
}

static size_t skip_space(const struct lexer *lx, size_t at) {
  return at + jj_scan_space(lx->source + at, lx->length - at);
}

static char char_at(const struct lexer *lx, size_t at) {
  return at < lx->length ? lx->source[at] : '\0';
}

/* --- text between tags --- */

enum tag { TAG_NONE, TAG_BLOCK, TAG_VARIABLE, TAG_COMMENT, TAG_RAW, TAG_LINE_STATEMENT, TAG_LINE_COMMENT };

struct opening {
  enum tag tag;
  size_t start, end; /* of the delimiter with its sign; of all of {% raw %} */
  char sign;         /* '-', '+' or 0 */
};

static size_t with_sign(const struct lexer *lx, struct opening *opening, size_t at) {
  char c = char_at(lx, at);
  opening->sign = c == '-' || c == '+' ? c : '\0';
  return opening->sign != '\0' ? at + 1 : at;
}

/* After "{%": is this {% raw %}? Gives the offset after it, or 0. */
static size_t raw_end(const struct lexer *lx, size_t at) {
  at = skip_space(lx, at);
  if (!at_text(lx, at, "raw")) return 0;
  at = skip_space(lx, at + 3);
  if (at_text(lx, at, "-%}")) return skip_space(lx, at + 3);
  return at_text(lx, at, "%}") ? at + 2 : 0;
}

static bool tag_here(const struct lexer *lx, size_t at, struct opening *opening) {
  char second = char_at(lx, at + 1);
  if (second != '%' && second != '{' && second != '#') return false;
  opening->start = at;
  opening->end = with_sign(lx, opening, at + 2);
  opening->tag = second == '%' ? TAG_BLOCK : second == '{' ? TAG_VARIABLE : TAG_COMMENT;
  size_t raw = second == '%' ? raw_end(lx, opening->end) : 0;
  if (raw > 0) {
    opening->tag = TAG_RAW;
    opening->end = raw;
  }
  return true;
}

static bool line_statement_here(const struct lexer *lx, size_t at, struct opening *opening) {
  const char *prefix = lx->env->options.line_statement_prefix;
  if (prefix == NULL || (at > 0 && lx->source[at - 1] != '\n')) return false;
  size_t from = at;
  while (from < lx->length && strchr(" \t\v", lx->source[from]) != NULL) from++;
  if (!at_text(lx, from, prefix)) return false;
  opening->tag = TAG_LINE_STATEMENT;
  opening->start = at;
  opening->end = with_sign(lx, opening, from + strlen(prefix));
  return true;
}

static bool line_comment_here(const struct lexer *lx, size_t at, struct opening *opening) {
  const char *prefix = lx->env->options.line_comment_prefix;
  if (prefix == NULL || (at > 0 && lx->source[at - 1] != '\n' && jj_scan_space(lx->source + at - 1, 1) > 0))
    return false;
  size_t from = at;
  while (from < lx->length && lx->source[from] != '\n' && jj_scan_space(lx->source + from, 1) > 0) from++;
  if (!at_text(lx, from, prefix)) return false;
  opening->tag = TAG_LINE_COMMENT;
  opening->start = at;
  opening->end = with_sign(lx, opening, from + strlen(prefix));
  return true;
}

static bool line_tag_here(const struct lexer *lx, size_t at, struct opening *opening) {
  const char *statement = lx->env->options.line_statement_prefix, *comment = lx->env->options.line_comment_prefix;
  bool comment_first = statement != NULL && comment != NULL && strlen(comment) > strlen(statement);
  if (comment_first && line_comment_here(lx, at, opening)) return true;
  return line_statement_here(lx, at, opening) || line_comment_here(lx, at, opening);
}

/* The next tag of any kind, from `at` on. */
static struct opening find_tag(const struct lexer *lx, size_t at) {
  struct opening opening = {.tag = TAG_NONE, .start = lx->length, .end = lx->length};
  bool lines = lx->env->options.line_statement_prefix != NULL || lx->env->options.line_comment_prefix != NULL;
  for (; at < lx->length; at++) {
    if (!lines) {
      const char *brace = memchr(lx->source + at, '{', lx->length - at);
      if (brace == NULL) return opening;
      at = (size_t)(brace - lx->source);
    }
    if (lx->source[at] == '{' && tag_here(lx, at, &opening)) return opening;
    if (lines && line_tag_here(lx, at, &opening)) return opening;
  }
  return opening;
}

/* The text before a tag, shortened at its end as the tag's sign and the options say. */
static size_t text_end(const struct lexer *lx, size_t start, size_t end, char sign, bool block) {
  if (sign == '-') {
    while (end > start && jj_scan_space_before(lx->source + start, end - start) > 0) {
      end -= jj_scan_space_before(lx->source + start, end - start);
    }
    return end;
  }
  if (sign == '+' || !block || !lx->env->options.lstrip_blocks) return end;
  size_t line = end;
  while (line > start && lx->source[line - 1] != '\n') line--;
  if (line == start && start > 0 && lx->source[start - 1] != '\n') return end;
  return jj_scan_space(lx->source + line, end - line) == end - line ? line : end;
}

static void add_data(struct lexer *lx, size_t start, size_t end) {
  if (end > start) add(lx, T_DATA, start, end - start);
}

/* The end of a block or comment tag at `at`, such as "-%}": the offset after it and what it swallows, or 0. */
static size_t tag_end(const struct lexer *lx, size_t at, const char *close) {
  if (char_at(lx, at) == '-' && at_text(lx, at + 1, close)) return skip_space(lx, at + 1 + strlen(close));
  if (char_at(lx, at) == '+' && at_text(lx, at + 1, close)) return at + 1 + strlen(close);
  if (!at_text(lx, at, close)) return 0;
  at += strlen(close);
  return lx->env->options.trim_blocks && char_at(lx, at) == '\n' ? at + 1 : at;
}

static void skip_comment(struct lexer *lx, size_t start) {
  if (lx->at == lx->length) return; /* Jinja2 takes a tag that opens at the very end for closed */
  for (size_t at = lx->at; at < lx->length; at++) {
    size_t end = tag_end(lx, at, "#}");
    if (end == 0) continue;
    lx->at = end;
    return;
  }
  fail_at(lx, start, "Missing end of comment tag");
}

/* At "{%": the offset after {% endraw %}, or 0; *sign is the sign after "{%". */
static size_t endraw_end(const struct lexer *lx, size_t at, char *sign) {
  if (!at_text(lx, at, "{%")) return 0;
  struct opening opening;
  at = skip_space(lx, with_sign(lx, &opening, at + 2));
  if (!at_text(lx, at, "endraw")) return 0;
  *sign = opening.sign;
  return tag_end(lx, skip_space(lx, at + 6), "%}");
}

static void lex_raw(struct lexer *lx, size_t start) {
  if (lx->at == lx->length) return;
  for (size_t at = lx->at; at < lx->length; at++) {
    char sign = '\0';
    size_t end = lx->source[at] == '{' ? endraw_end(lx, at, &sign) : 0;
    if (end == 0) continue;
    add_data(lx, lx->at, text_end(lx, lx->at, at, sign, true));
    lx->at = end;
    return;
  }
  fail_at(lx, start, "Missing end of raw directive");
}

/* --- inside of tags --- */

static const struct {
  char text[3];
  uint8_t kind;
} operators[] = {{"//", T_FLOORDIV}, {"**", T_POW},     {"==", T_EQ},      {"!=", T_NE},    {">=", T_GTEQ},
                 {"<=", T_LTEQ},     {"+", T_ADD},      {"-", T_SUB},      {"/", T_DIV},    {"*", T_MUL},
                 {"%", T_MOD},       {"[", T_LBRACKET}, {"]", T_RBRACKET}, {"(", T_LPAREN}, {")", T_RPAREN},
                 {"{", T_LBRACE},    {"}", T_RBRACE},   {">", T_GT},       {"<", T_LT},     {"=", T_ASSIGN},
                 {".", T_DOT},       {":", T_COLON},    {"|", T_PIPE},     {",", T_COMMA},  {";", T_SEMICOLON},
                 {"~", T_TILDE}};
enum { OPERATOR_COUNT = sizeof operators / sizeof *operators };

static void check_balance(struct lexer *lx, enum token_kind kind, size_t at) {
  if (kind == T_LPAREN || kind == T_LBRACE || kind == T_LBRACKET) {
    if (lx->open_count == (int)sizeof lx->open) fail_at(lx, at, "too many open brackets");
    lx->open[lx->open_count++] = kind == T_LPAREN ? ')' : kind == T_LBRACE ? '}' : ']';
  } else if (kind == T_RPAREN || kind == T_RBRACE || kind == T_RBRACKET) {
    char c = lx->source[at];
    if (lx->open_count == 0) fail_at(lx, at, arena_printf(lx->fault->arena, "unexpected '%c'", c));
    char expected = lx->open[--lx->open_count];
    if (c != expected) {
      fail_at(lx, at, arena_printf(lx->fault->arena, "unexpected '%c', expected '%c'", c, expected));
    }
  }
}

static void lex_operator(struct lexer *lx) {
  for (int i = 0; i < OPERATOR_COUNT; i++) {
    if (!at_text(lx, lx->at, operators[i].text)) continue;
    check_balance(lx, operators[i].kind, lx->at);
    size_t length = strlen(operators[i].text);
    add(lx, operators[i].kind, lx->at, length);
    lx->at += length;
    return;
  }
  char message[48] = "unexpected char '";
  int size;
  jj_utf8_decode(lx->source + lx->at, lx->length - lx->at, &size);
  memcpy(message + 17, lx->source + lx->at, (size_t)size);
  strcpy(message + 17 + size, "'");
  fail_at(lx, lx->at, arena_string(lx->fault->arena, message));
}

static void lex_number(struct lexer *lx) {
  bool after_dot = lx->at > 0 && lx->source[lx->at - 1] == '.';
  struct number number = jj_scan_number(lx->source + lx->at, lx->length - lx->at, !after_dot);
  if (number.overflow) fail_at(lx, lx->at, "the integer does not fit in 64 bits");
  struct token *token = add(lx, number.real ? T_FLOAT : T_INTEGER, lx->at, number.length);
  token->value = number.real ? jinja_double(number.as_double) : jinja_int(number.as_int);
  lx->at += number.length;
}

static void lex_string(struct lexer *lx) {
  char quote = lx->source[lx->at];
  size_t end = lx->at + 1;
  while (end < lx->length && lx->source[end] != quote) end += lx->source[end] == '\\' ? 2 : 1;
  if (end >= lx->length) fail_at(lx, lx->at, arena_printf(lx->fault->arena, "unexpected char '%c'", quote));
  struct token *token = add(lx, T_STRING, lx->at, end + 1 - lx->at);
  if (!jj_scan_unescape(&lx->env->pool, lx->source + lx->at + 1, end - lx->at - 1, &token->value)) {
    fail_at(lx, lx->at, "invalid escape in the string");
  }
  lx->at = end + 1;
}

static bool lex_name(struct lexer *lx) {
  size_t length = jj_scan_name(lx->source + lx->at, lx->length - lx->at);
  if (length == 0) return false;
  struct token *token = add(lx, T_NAME, lx->at, length);
  token->value = jj_string_value(jj_intern(lx->env, lx->source + lx->at, length));
  lx->at += length;
  return true;
}

static void lex_expression_token(struct lexer *lx) {
  char c = lx->source[lx->at];
  if (jj_scan_space(lx->source + lx->at, lx->length - lx->at) > 0) {
    lx->at = skip_space(lx, lx->at);
  } else if (c >= '0' && c <= '9') {
    lex_number(lx);
  } else if (c == '\'' || c == '"') {
    lex_string(lx);
  } else if (!lex_name(lx)) {
    lex_operator(lx);
  }
}

/* The end of a line statement: whitespace up to and with the last newline of the run, or the end of the text. */
static size_t line_statement_end(const struct lexer *lx, size_t at) {
  size_t end = skip_space(lx, at);
  if (end == lx->length) return end;
  while (end > at && lx->source[end - 1] != '\n') end--;
  return end;
}

/* Lexes up to the end of a tag. `at_end` is where the tag's end token is put. */
static void lex_tag(struct lexer *lx, enum tag tag) {
  while (true) {
    size_t end = 0;
    if (lx->open_count == 0) {
      if (tag == TAG_BLOCK) end = tag_end(lx, lx->at, "%}");
      if (tag == TAG_VARIABLE && at_text(lx, lx->at, "}}")) end = lx->at + 2;
      if (tag == TAG_VARIABLE && at_text(lx, lx->at, "-}}")) end = skip_space(lx, lx->at + 3);
      if (tag == TAG_LINE_STATEMENT) end = line_statement_end(lx, lx->at);
      if (tag == TAG_LINE_STATEMENT && end == lx->at && lx->at < lx->length) end = 0;
    }
    bool at_line_end = tag == TAG_LINE_STATEMENT && lx->open_count == 0 && lx->at == lx->length;
    if (end > 0 || at_line_end) {
      add(lx, tag == TAG_VARIABLE ? T_VARIABLE_END : T_BLOCK_END, lx->at, 2);
      lx->at = end;
      return;
    }
    if (lx->at >= lx->length) return; /* the parser says what is missing */
    lex_expression_token(lx);
  }
}

static void lex_after(struct lexer *lx, const struct opening *opening) {
  lx->at = opening->end;
  switch (opening->tag) {
  case TAG_NONE:
    break;
  case TAG_COMMENT:
    skip_comment(lx, opening->start);
    break;
  case TAG_RAW:
    lex_raw(lx, opening->start);
    break;
  case TAG_LINE_COMMENT:
    while (lx->at < lx->length && lx->source[lx->at] != '\n') lx->at++;
    break;
  case TAG_BLOCK:
  case TAG_VARIABLE:
  case TAG_LINE_STATEMENT:
    add(lx, opening->tag == TAG_VARIABLE ? T_VARIABLE_BEGIN : T_BLOCK_BEGIN, opening->start, 2);
    lx->open_count = 0;
    lex_tag(lx, opening->tag);
    break;
  }
}

struct tokens jj_lex(struct jinja_env *env, struct syntax_fault *fault, const char *source, size_t length) {
  struct lexer lx = {.env = env, .fault = fault, .source = source, .length = length, .line = 1};
  while (lx.at < lx.length) {
    size_t start = lx.at;
    struct opening opening = find_tag(&lx, start);
    bool block = opening.tag != TAG_VARIABLE && opening.tag != TAG_NONE;
    add_data(&lx, start,
             opening.tag == TAG_NONE ? lx.length : text_end(&lx, start, opening.start, opening.sign, block));
    lex_after(&lx, &opening);
  }
  add(&lx, T_EOF, lx.length, 0);
  return lx.tokens;
}

const char *jj_normalize(struct jinja_env *env, const char *source, size_t *length) {
  if (memchr(source, '\r', *length) != NULL) {
    char *copy = arena_alloc(env->arena, *length + 1);
    size_t count = 0;
    for (size_t i = 0; i < *length; i++) {
      copy[count++] = source[i] == '\r' ? '\n' : source[i];
      if (source[i] == '\r' && i + 1 < *length && source[i + 1] == '\n') i++;
    }
    source = copy;
    *length = count;
  }
  if (!env->options.keep_trailing_newline && *length > 0 && source[*length - 1] == '\n') --*length;
  return source;
}
