/* Arrays of a counting sort (Knuth, "The Art of Computer Programming", 5.2): elements are counted by group, prefix sums
 * of the counts are where groups start, and copies of these are cursors that place each element. */
#ifndef ACCEL_AUDIT_INTERP_GROUPING_H
#define ACCEL_AUDIT_INTERP_GROUPING_H

#include "gen/c/tree.h"

enum grouping_kind {
  GROUPING_COUNTS, /* element g + 1: of the elements of `index`, those of group g; none is negative */
  GROUPING_STARTS, /* ascending from 0 on, none above the total */
  GROUPING_CURSORS /* starts that the current loop advances, one for each element of `index` */
};

/* What an array of integers is. It never changes: a write to the array or to `index` removes it. */
struct grouping {
  enum grouping_kind kind;
  int64_t total;  /* an upper bound of the sum of counts */
  bool from_zero; /* starts: the first one is 0 */
  /* What was counted, each element once: bytes of the arena, outside of kernels, or within one its parameter, from 0 to
   * its end; index_to 0: it is not known. */
  int64_t index_from, index_to;
  int index_parameter; /* within a kernel; -1: outside of one */
};

/* An integer, or a pointer's bytes from its slot's start: `factor` times an element of an array of starts, and low ..
 * high. */
struct linear {
  const struct grouping *starts; /* which array, and which of its contents */
  int64_t element;               /* its first byte */
  int64_t factor, low, high;
  int64_t end; /* of the distance between two elements: the first byte of the other one; -1: it is none */
};

/* Rows that a kernel has written to an array: from its start up to an element of starts. */
struct row_chain {
  int object; /* -1: none */
  const struct grouping *starts;
  int64_t element, factor, to; /* no byte from `to` on */
};

/* Whether two integers, or an array's contents, are known to be the same. */
bool linear_same_element(const struct linear *a, const struct linear *b);
bool grouping_same(const struct grouping *a, const struct grouping *b);

#endif
