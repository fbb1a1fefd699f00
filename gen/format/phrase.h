/* A line's tokens as wrapping sees them: operators with their operands, and what a break before each costs. */
#ifndef ACCEL_FORMAT_PHRASE_H
#define ACCEL_FORMAT_PHRASE_H

#include "gen/format/wrap.h"

/* What binds more tightly is larger. */
enum precedence {
  PRECEDENCE_NONE,
  PRECEDENCE_COMMA,
  PRECEDENCE_ASSIGNMENT,
  PRECEDENCE_CONDITIONAL,
  PRECEDENCE_OR,
  PRECEDENCE_AND,
  PRECEDENCE_BIT_OR,
  PRECEDENCE_BIT_XOR,
  PRECEDENCE_BIT_AND,
  PRECEDENCE_EQUALITY,
  PRECEDENCE_RELATION,
  PRECEDENCE_SHIFT = 12,
  PRECEDENCE_SUM,
  PRECEDENCE_PRODUCT,
  PRECEDENCE_UNARY = 16,
  PRECEDENCE_MEMBER
};

enum word_role {
  ROLE_OTHER,
  ROLE_OPEN,
  ROLE_CLOSE,
  ROLE_COMMA,
  ROLE_SEMICOLON,
  ROLE_BINARY,
  ROLE_QUESTION,
  ROLE_COLON, /* of a condition */
  ROLE_UNARY,
  ROLE_MEMBER, /* . and -> */
  ROLE_STRING,
  ROLE_FUNCTION_NAME /* of a declaration */
};

enum { GROUPS = 12 };

struct word {
  const struct token *token;
  enum word_role role;
  enum precedence precedence; /* of an operator */
  int width, level;           /* level: brackets around it */
  int match;                  /* of brackets, among the words, or -1 */
  bool in_list;               /* in braces */
  /* Groups of operands with their operators that begin here, the innermost first, and how many end here. */
  signed char groups[GROUPS];
  int group_count, group_ends;
  bool begins_binary, ends_binary;
  bool first_operator, last_operator; /* of its group */
  bool closes_template;               /* a declaration's `template <...>` */
  bool designator;                    /* the . or [ of a designated initializer */
  bool can_break, must_break;         /* before it */
  int penalty;                        /* of a break before it */
};

struct phrase {
  struct word *words;
  int count;
};

struct phrase phrase_of(struct arena *arena, const struct tokens *tokens, const struct line *line);

#endif
