/* Indices: columns of rows that a model looks something up by, which data is held against when it is read. */
#ifndef RUNTIME_DATA_INDICES_H
#define RUNTIME_DATA_INDICES_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

/* What is asked of the columns of a row: the first `width` of them are features, the last one is the label. Of columns
 * that no item names nothing is asked. */
struct indices {
  struct accel_index *items; /* owned; in the order of their columns */
  int count;
  int64_t width;
};

/* What a program requires of its rows, with the label where that is a class. Freed by rt_indices_free, also after
 * false. */
bool rt_indices_of(struct indices *indices, const struct accel_program *program, struct problem *problem);

void rt_indices_free(struct indices *indices);

/* What is asked of a label that is a class. */
struct accel_index rt_class_index(const struct accel_program *program);

/* Whether a number may stand in a column of `index`. */
bool rt_index_fits(const struct accel_index *index, double number);

/* The problem that one may not: `number`, as people read it, stands in column `column`, from 0, at `where`, "t.csv:
 * line 3". Always false. */
bool rt_index_problem(const struct indices *indices, const struct accel_index *index, int64_t column, const char *where,
                      const char *number, struct problem *problem);

#endif
