/* The arena's map at a point of a step: which bytes were written, and as which slot. */
#ifndef ACCEL_AUDIT_INTERP_MAP_H
#define ACCEL_AUDIT_INTERP_MAP_H

#include "gen/audit/interp/value.h"
#include "gen/audit/program/claim.h"

struct map_entry {
  int64_t from, to;
  const struct path *path; /* NULL: at the start, as state or as padding */
};

struct map {
  struct map_entry *items;
  int count, capacity;
  struct map_content {
    int64_t from, to, low, high;
    bool exact; /* each of them may occur */
    const struct grouping *grouping;
  } *contents; /* integers whose range is known */
  int n_contents, contents_capacity;
};

/* What was known of integers at a point. */
struct map_contents {
  struct map_content *items;
  int count;
};

struct map_contents map_copy_contents(struct arena *arena, const struct map *map);

/* The map has these contents, and no others. */
void map_take_contents(struct arena *arena, struct map *map, struct map_contents contents);

/* The map has what is known on both of two paths: its own, and one that ends with these contents. */
void map_join_contents(struct map *map, struct map_contents other);

/* The bytes are written as the slot of `path` now. */
void map_write(struct arena *arena, struct map *map, int64_t from, int64_t to, const struct path *path);

/* The first byte of from .. to - 1 that was not written, or -1. */
int64_t map_unwritten(const struct map *map, int64_t from, int64_t to);

/* The slot that took the bytes over from the slot of `path`, of which they are read now; NULL when there is none. */
const struct path *map_taken(const struct map *map, int64_t from, int64_t to, const struct path *path);

/* Whether two slots share memory as different members of a union that is not two views of the same numbers. */
bool paths_exclude(const struct path *a, const struct path *b);

/* Marks as written what no member of a view's record covers: padding that another view reads. */
void map_add_padding(struct arena *arena, struct map *map, const struct type *type, int64_t offset);

#endif
