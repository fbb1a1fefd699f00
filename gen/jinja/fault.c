/* What is wrong with a template's text, in words. */
#include <stdarg.h>

#include "gen/jinja/lexer.h"

void jj_syntax_error(struct syntax_fault *fault, int line, int column, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fault->message = arena_vprintf(fault->arena, format, args);
  va_end(args);
  fault->line = line;
  fault->column = column;
  longjmp(fault->jump, 1);
}

const char *jj_describe_token(struct arena *arena, const struct token *token) {
  switch (token->kind) {
  case T_EOF:
    return "end of template";
  case T_DATA:
    return "template data / text";
  case T_VARIABLE_BEGIN:
    return "begin of print statement";
  case T_VARIABLE_END:
    return "end of print statement";
  case T_BLOCK_BEGIN:
    return "begin of statement block";
  case T_BLOCK_END:
    return "end of statement block";
  case T_STRING:
    return "string";
  case T_INTEGER:
    return "integer";
  case T_FLOAT:
    return "float";
  default:
    return arena_copy(arena, token->text, token->length);
  }
}
