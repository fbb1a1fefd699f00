/* Rows of a state that the ranks along dp_shard divide (struct accel_row): a rank's elements of them, found by their
 * positions in the whole. A state of no row is an array that each rank has. */
#ifndef RUNTIME_WEIGHTS_SHARDED_ROWS_H
#define RUNTIME_WEIGHTS_SHARDED_ROWS_H

#include "include/accel/trainer.h"

/* Whether ranks along dp_shard divide a state. */
bool rt_rows_divide(const struct accel_program *program, int state);

/* The rows that a rank and those along dp_shard divide: from *first up to *end. */
void rt_rows_of(const struct accel_program *program, int rank, int *first, int *end);

/* Row `k` as a state has it: false where it has nothing of it. */
bool rt_rows_have(const struct accel_program *program, int state, int k, struct accel_row *row);

/* Whether a row of those has some of `count` elements from `first` on. */
bool rt_rows_meet(const struct accel_program *program, int rank, size_t first, size_t count);

/* Whether a state mirrors weights that each rank has whole: what no row has of it, such as frozen parameters, is as
 * there. */
bool rt_rows_leave_rest(const struct accel_program *program, int state);

/* Collects `count` elements of a state from its element `first` on into `to` of rank 0 (NULL on the others), from what
 * rank `from` and those have, `own`, that differ from it along dp_shard alone. All ranks call it. */
void rt_rows_collect(const struct accel_program *program, int state, int from, const char *own, size_t first,
                     size_t count, char *to);

/* Takes of these elements, at `all`, what is this rank's into `own`. */
void rt_rows_take(const struct accel_program *program, int state, char *own, size_t first, size_t count,
                  const char *all);

#endif
