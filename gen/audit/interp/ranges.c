#include "gen/audit/interp/ranges.h"

#include <stddef.h>

bool ranges_cover(const struct ranges *set, int64_t from, int64_t to, int64_t *missing) {
  for (int i = 0; set != NULL && i < set->count && from < to; i++) {
    if (set->items[i].to <= from) continue;
    if (set->items[i].from > from) break;
    from = set->items[i].to;
  }
  *missing = from;
  return from >= to;
}

const struct ranges *ranges_add(struct arena *arena, const struct ranges *set, int64_t from, int64_t to) {
  int64_t missing;
  if (from >= to || ranges_cover(set, from, to, &missing)) return set;
  int count = set == NULL ? 0 : set->count;
  struct ranges *made = arena_alloc(arena, sizeof *made + ((size_t)count + 1) * sizeof(struct range));
  int i = 0;
  while (i < count && set->items[i].to < from) made->items[made->count++] = set->items[i++];
  struct range whole = {from, to};
  for (; i < count && set->items[i].from <= to; i++) {
    if (set->items[i].from < whole.from) whole.from = set->items[i].from;
    if (set->items[i].to > whole.to) whole.to = set->items[i].to;
  }
  made->items[made->count++] = whole;
  while (i < count) made->items[made->count++] = set->items[i++];
  return made;
}

const struct ranges *ranges_add_missing(struct arena *arena, const struct ranges *set, const struct ranges *other,
                                        int64_t from, int64_t to) {
  for (int i = 0; set != NULL && i < set->count && from < to; i++) {
    if (set->items[i].to <= from) continue;
    int64_t end = set->items[i].from < to ? set->items[i].from : to;
    other = ranges_add(arena, other, from, end);
    from = set->items[i].to;
  }
  return ranges_add(arena, other, from, to);
}

const struct ranges *ranges_common(struct arena *arena, const struct ranges *a, const struct ranges *b) {
  const struct ranges *common = NULL;
  if (a == b) return a;
  for (int i = 0; a != NULL && i < a->count; i++)
    for (int j = 0; b != NULL && j < b->count; j++) {
      int64_t from = a->items[i].from > b->items[j].from ? a->items[i].from : b->items[j].from;
      int64_t to = a->items[i].to < b->items[j].to ? a->items[i].to : b->items[j].to;
      common = ranges_add(arena, common, from, to);
    }
  return common;
}
