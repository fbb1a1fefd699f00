/* Difference: which lines two texts have in common, in the same order. */
#ifndef ACCEL_BASE_DIFFERENCE_H
#define ACCEL_BASE_DIFFERENCE_H

#include "gen/base/arena.h"

/* A text in lines, without their ends. */
struct lines {
  const char **starts;
  int *lengths;
  int count;
};

/* The lines of a text of `length` bytes, which stays where it is. A last line without an end counts. */
struct lines lines_of(struct arena *arena, const char *text, size_t length);

/* For each line of `a` the line of `b` that it is, counted from 0, or -1. Matched lines are equal, and in the same
 * order on both sides. Lines that each side has once are matched first, as far as they keep their order (Cohen's
 * patience difference); between them as many as possible are. */
int *lines_match(struct arena *arena, const struct lines *a, const struct lines *b);

#endif
