/* Where a line that is too long is broken: at the least penalty, as clang-format reckons it. */
#ifndef ACCEL_FORMAT_WRAP_H
#define ACCEL_FORMAT_WRAP_H

#include "gen/format/token.h"

/* A statement, or a part of one that is on lines of its own. */
struct line {
  int first, end; /* its tokens, from `first` to before `end` */
  int indent;
  int depth;        /* of brackets around it: 0, or more for an item of a list */
  bool declaration; /* what it begins with is declared, not called */
};

/* Decides breaks and columns of the line's tokens but the first one, which are set. */
void wrap_line(struct arena *arena, struct tokens *tokens, const struct line *line);

#endif
