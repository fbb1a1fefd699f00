#include "gen/format/token.h"

#include <ctype.h>
#include <string.h>

bool token_is(const struct token *token, const char *text) {
  if (token->text[0] != text[0] || (token->kind != TOKEN_WORD && token->kind != TOKEN_MARK)) return false;
  const size_t length = strlen(text);
  return (size_t)token->length == length && memcmp(token->text, text, length) == 0;
}

bool token_is_any(const struct token *token, const char *const *texts) {
  for (; *texts != NULL; texts++)
    if (token_is(token, *texts)) return true;
  return false;
}

bool token_must_break(const struct token *token) {
  static const char *const closing[] = {")", "]", "}", NULL};
  const struct token *before = token - 1;
  if (token->kind == TOKEN_STRING && before->kind == TOKEN_STRING) return true;
  const bool comment = token->kind == TOKEN_COMMENT || before->kind == TOKEN_COMMENT;
  return comment && token->newlines > 0 && !token_is_any(token, closing);
}

int token_width(const struct token *token) {
  int width = 0;
  for (int i = 0; i < token->length && token->text[i] != '\n'; i++) width += (token->text[i] & 0xc0) != 0x80;
  return width;
}

/* ---- Their ends ---- */

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80) != 0;
}

static const char *word_end(const char *at, const char *end) {
  const bool number = isdigit((unsigned char)*at) || *at == '.';
  for (; at < end; at++) {
    const bool sign = number && (*at == '+' || *at == '-') && strchr("eEpP", at[-1]) != NULL;
    if (!is_word(*at) && !(number && *at == '.') && !sign) break;
  }
  return at;
}

static const char *string_end(const char *at, const char *end) {
  const char quote = *at++;
  while (at < end && *at != quote && *at != '\n') at += *at == '\\' && at + 1 < end ? 2 : 1;
  return at < end && *at == quote ? at + 1 : at;
}

static const char *find(const char *at, const char *end, const char *what) {
  const size_t length = strlen(what);
  for (; at + length <= end; at++)
    if (memcmp(at, what, length) == 0) return at + length;
  return end;
}

static const char *comment_end(const char *at, const char *end) {
  if (at[1] == '*') return find(at + 2, end, "*/");
  while (at < end && *at != '\n') at++;
  return at;
}

static const char *directive_end(const char *at, const char *end) {
  while (at < end && (*at != '\n' || at[-1] == '\\')) at++;
  while (isspace((unsigned char)at[-1])) at--;
  return at;
}

static int mark_length(const char *at, const char *end) {
  static const char *const marks[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
                                      "&&",  "||",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::", "##"};
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    const size_t length = strlen(marks[i]);
    if ((size_t)(end - at) >= length && memcmp(at, marks[i], length) == 0) return (int)length;
  }
  return 1;
}

/* ---- One after the other ---- */

#define OFF "/* clang-format off */"
#define ON "/* clang-format on */"

static const char *token_end(const char *at, const char *end, bool first, enum token_kind *kind) {
  *kind = TOKEN_WORD;
  if (is_word(*at) || (*at == '.' && at + 1 < end && isdigit((unsigned char)at[1]))) return word_end(at, end);
  *kind = TOKEN_STRING;
  if (*at == '"' || *at == '\'') return string_end(at, end);
  *kind = TOKEN_VERBATIM;
  if ((size_t)(end - at) > strlen(OFF) && memcmp(at, OFF, strlen(OFF)) == 0) return find(at, end, ON);
  *kind = TOKEN_COMMENT;
  if (*at == '/' && at + 1 < end && (at[1] == '*' || at[1] == '/')) return comment_end(at, end);
  *kind = TOKEN_DIRECTIVE;
  if (*at == '#' && first) return directive_end(at, end);
  *kind = TOKEN_MARK;
  return at + mark_length(at, end);
}

/* Whether a space joins a token with the one before it, where the text has a line break. */
static bool joins_with_space(const struct token *before, const struct token *token) {
  static const char *const open[] = {"(", "[", "{", ".", "->", "::", "!", "~", NULL};
  static const char *const closed[] = {")", "]", "}", ",", ";", ".", "->", "::", NULL};
  if (token_is(before, ",")) return true;
  if (token_is_any(before, open)) return false;
  return !token_is_any(token, closed) || before->kind == TOKEN_COMMENT;
}

/* A list's braces have no spaces inside; those after a word are of a type or an enumeration. */
static void join_list(struct tokens *tokens, int open, int close) {
  if (tokens->items[open].text[0] != '{' || open == 0) return;
  if (tokens->items[open - 1].kind == TOKEN_WORD && !token_is(&tokens->items[open - 1], "return")) return;
  if (tokens->items[open + 1].kind != TOKEN_COMMENT) tokens->items[open + 1].space = false;
  if (tokens->items[close - 1].kind != TOKEN_COMMENT) tokens->items[close].space = false;
}

/* The pairs of brackets, and which marks are operators between two operands: those with a space on either side. A `<`
 * that no space follows opens a template's arguments. */
static void match_brackets(struct arena *arena, struct tokens *tokens) {
  int *open = arena_alloc(arena, ((size_t)tokens->count + 1) * sizeof *open), depth = 0;
  for (int i = 0; i < tokens->count; i++) {
    struct token *token = &tokens->items[i];
    token->match = -1;
    if (token->kind != TOKEN_MARK) continue;
    const bool space_after = i + 1 < tokens->count && tokens->items[i + 1].space;
    const char c = token->text[0];
    token->binary = token->space && space_after && strchr("=+-*/%&|^<>!", c) != NULL;
    if (token->length > 1 || token->binary) continue;
    if (c == '(' || c == '[' || c == '{' || (c == '<' && !space_after)) open[depth++] = i;
    if (c == '>' && (depth == 0 || tokens->items[open[depth - 1]].text[0] != '<')) continue;
    if (c != ')' && c != ']' && c != '}' && c != '>') continue;
    while (depth > 0 && c != '>' && tokens->items[open[depth - 1]].text[0] == '<') depth--;
    if (depth == 0) continue;
    token->match = open[--depth];
    tokens->items[token->match].match = i;
    join_list(tokens, token->match, i);
  }
}

struct tokens format_tokens(struct arena *arena, const char *text, size_t length) {
  struct tokens tokens = {.capacity = (int)(length / 4) + 16};
  tokens.items = arena_alloc(arena, (size_t)tokens.capacity * sizeof *tokens.items);
  const char *end = text + length;
  int newlines = 1;
  bool space = false;
  for (const char *at = text; at < end;) {
    if (isspace((unsigned char)*at)) {
      newlines += *at++ == '\n';
      space = true;
      continue;
    }
    struct token token = {.text = at, .newlines = newlines, .match = -1};
    at = token_end(at, end, newlines > 0, &token.kind);
    token.length = (int)(at - token.text);
    token.space = newlines == 0 ? space : tokens.count > 0 && joins_with_space(&tokens.items[tokens.count - 1], &token);
    ARENA_PUSH(arena, tokens, token);
    newlines = 0;
    space = false;
  }
  match_brackets(arena, &tokens);
  return tokens;
}
