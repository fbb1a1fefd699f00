/* Rows: tables of which several layers have the same rows, so that a program has those of one of them. */
#ifndef ACCEL_EMIT_ROWS_H
#define ACCEL_EMIT_ROWS_H

#include "gen/base/arena.h"
#include "gen/jinja/jinja.h"

/* A row as it is compared with the one of another layer: they are called alike but for one number, have equal numbers
 * in `same`, and what is in `steps` grows as much from each layer to the next. */
struct table_row {
  const char *name;
  int64_t same[16], steps[8];
};

/* Rows that repeat: the first of the rows of one layer, how many, and of how many layers there are such. */
struct repeat {
  int first, rows, count;
};

struct repeat_list {
  struct repeat *items;
  int count, capacity;
};

/* Finds them. These rows are then called "h.%d.attn.weight" in `rows`. */
struct repeat_list find_repeats(struct arena *arena, struct table_row *rows, int count);

/* The same as [{first, rows, count}]. */
struct jinja_value repeats_value(struct arena *arena, struct table_row *rows, int count);

/* A table of such rows: {names, cells, repeats}. Its columns are the first ones of `steps`, and after them those of
 * `same`. */
struct jinja_value table_value(struct arena *arena, struct table_row *rows, int count, int n_steps, int n_same);

#endif
