/* Ranges: sets of bytes as sorted, separate intervals. A set never changes: what adds to one gives another. */
#ifndef ACCEL_AUDIT_INTERP_RANGES_H
#define ACCEL_AUDIT_INTERP_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"

struct range {
  int64_t from, to; /* to is the first byte after it */
};

struct ranges {
  int count;
  struct range items[];
};

/* The set with from .. to - 1 as well. NULL is the empty set; the same set when nothing is new. */
const struct ranges *ranges_add(struct arena *arena, const struct ranges *set, int64_t from, int64_t to);

/* The intersection. */
const struct ranges *ranges_common(struct arena *arena, const struct ranges *a, const struct ranges *b);

/* Whether from .. to - 1 is in the set; if not, *missing is the first byte that does not. */
bool ranges_cover(const struct ranges *set, int64_t from, int64_t to, int64_t *missing);

/* What of from .. to - 1 the set lacks, added to `other`. */
const struct ranges *ranges_add_missing(struct arena *arena, const struct ranges *set, const struct ranges *other,
                                        int64_t from, int64_t to);

#endif
