/* The tokens of a program and where formatting puts them. */
#ifndef ACCEL_FORMAT_TOKEN_H
#define ACCEL_FORMAT_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "gen/base/arena.h"

enum { FORMAT_COLUMNS = 120, FORMAT_INDENT = 2, FORMAT_CONTINUATION = 4 };

enum token_kind {
  TOKEN_WORD, /* names, keywords, numbers */
  TOKEN_STRING,
  TOKEN_MARK, /* operators and brackets */
  TOKEN_COMMENT,
  TOKEN_DIRECTIVE, /* a line of the preprocessor with those that continue it */
  TOKEN_VERBATIM   /* from a comment `clang-format off` to its `on` */
};

struct token {
  const char *text; /* in the text as it was written; not followed by a NUL */
  int length;
  enum token_kind kind;
  int newlines; /* in the white space before it, as it was written */
  bool space;   /* between it and the token before it, where both are on one line */
  bool binary;  /* an operator between two operands */
  int match;    /* the other bracket of its pair, or -1 */
  /* What formatting decides. */
  int breaks;    /* line breaks before it: 0, 1, or 2 for a blank line */
  int column;    /* from 0 */
  bool trailing; /* a comment after code */
};

struct tokens {
  struct token *items;
  int count, capacity;
};

/* The tokens of a text, which they point to. */
struct tokens format_tokens(struct arena *arena, const char *text, size_t length);

/* Whether the token is this word or mark. */
bool token_is(const struct token *token, const char *text);
bool token_is_any(const struct token *token, const char *const *texts); /* they end with NULL */

/* Whether a token, which is not the first, begins a line whatever the width: strings that follow each other, and what
 * was on another line than the comment before it, or a comment that did; but for closing brackets. */
bool token_must_break(const struct token *token);

/* Columns of the token's first line. */
int token_width(const struct token *token);

#endif
