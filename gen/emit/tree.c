/* The order in which gradients of a step's micro-batches add up. */
#include "gen/emit/values.h"
#include "gen/program/sending.h"

struct jinja_value tree_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct tree *tree = &program->ranks.tree;
  struct jinja_value value = jinja_map(arena), levels = jinja_list(arena);
  if (tree->leaves == 0) return value;
  const struct axes *axes = &program->mesh.batches;
  int64_t ranks = job_data_ranks(program->job), own = tree->leaves / ranks;
  for (int i = 0; i < tree->levels; i++) {
    struct jinja_value level = jinja_map(arena);
    set_int(arena, level, "leaves", (int64_t)1 << i);
    set_int(arena, level, "distance", own >> (i + 1));
    set_int(arena, level, "offset", i * tree->gradients);
    jinja_push(arena, levels, level);
  }
  set_int(arena, value, "leaves", tree->leaves);
  set_int(arena, value, "own", own);
  set_int(arena, value, "ranks", ranks);
  set_int(arena, value, "gradients", tree->gradients);
  set_int(arena, value, "buffer", tree->buffer);
  set_int(arena, value, "losses", tree->losses);
  set_bool(arena, value, "by_buckets", tree->by_buckets);
  set_bool(arena, value, "async", axes->count == 0 || tree_is_async(program, axes->items[axes->count - 1]));
  jinja_set(arena, value, "levels", levels);
  return value;
}
