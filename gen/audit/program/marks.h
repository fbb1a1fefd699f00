/* Marks: what the tree of a program does not show. Pragmas, attributes, macros and directives, from its tokens. */
#ifndef ACCEL_AUDIT_PROGRAM_MARKS_H
#define ACCEL_AUDIT_PROGRAM_MARKS_H

#include "gen/c/tree.h"

enum mark_kind { MARK_UNKNOWN, MARK_PRAGMA, MARK_ATTRIBUTE, MARK_MACRO, MARK_INCLUDE, MARK_CONDITION, MARK_SKIPPED };

struct mark {
  enum mark_kind kind;
  const char *text;      /* what follows the word; of MARK_UNKNOWN the whole directive */
  const char *arguments; /* of an attribute, with their brackets; "": none */
  struct location where;
};

struct marks {
  struct mark *items;
  int count, capacity;
};

/* The marks of a program whose tokens were read and of its own headers, in the order of their lines; skipped lines
 * last. */
struct marks marks_of(struct arena *arena, const struct tree *tree);

#endif
