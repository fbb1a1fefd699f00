/* Lexer: template text in, tokens out. All whitespace control (-, +, trim_blocks, lstrip_blocks), raw sections,
 * comments and line statements end here: the parser sees text, tags and expression tokens only. */
#ifndef ACCEL_JINJA_LEXER_H
#define ACCEL_JINJA_LEXER_H

#include <setjmp.h>

#include "gen/jinja/value.h"

enum token_kind {
  T_EOF,
  T_DATA,
  T_VARIABLE_BEGIN,
  T_VARIABLE_END,
  T_BLOCK_BEGIN,
  T_BLOCK_END,
  T_NAME,
  T_STRING,
  T_INTEGER,
  T_FLOAT,
  T_ADD,
  T_ASSIGN,
  T_COLON,
  T_COMMA,
  T_DIV,
  T_DOT,
  T_EQ,
  T_FLOORDIV,
  T_GT,
  T_GTEQ,
  T_LBRACE,
  T_LBRACKET,
  T_LPAREN,
  T_LT,
  T_LTEQ,
  T_MOD,
  T_MUL,
  T_NE,
  T_PIPE,
  T_POW,
  T_RBRACE,
  T_RBRACKET,
  T_RPAREN,
  T_SEMICOLON,
  T_SUB,
  T_TILDE
};

struct token {
  uint8_t kind;
  int line, column;
  const char *text; /* in the source */
  size_t length;
  struct jinja_value value; /* names (interned), strings, numbers */
};

struct tokens {
  struct token *items;
  int count, capacity;
};

/* Where a syntax error goes: the compiler of the template waits with setjmp. */
struct syntax_fault {
  jmp_buf jump;
  const char *message;
  int line, column;
  struct arena *arena;
};

/* Ends the compilation with a message at a location. */
_Noreturn void jj_syntax_error(struct syntax_fault *fault, int line, int column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

struct jinja_env;

/* All tokens of `source`; the last is T_EOF. */
struct tokens jj_lex(struct jinja_env *env, struct syntax_fault *fault, const char *source, size_t length);

/* How a message names a token. */
const char *jj_describe_token(struct arena *arena, const struct token *token);

/* `source` as the lexer reads it: line ends made \n, one newline at the end dropped unless it is to be kept. */
const char *jj_normalize(struct jinja_env *env, const char *source, size_t *length);

#endif
