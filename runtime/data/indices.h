/* What is asked of the numbers of a row, which data is held against when it is read. */
#ifndef RUNTIME_DATA_INDICES_H
#define RUNTIME_DATA_INDICES_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

/* The numbers of a row, input after input, and what is asked of some: of those that no item names, nothing but that
 * they are finite. An item whose `below` is 0 asks for a whole number of 32 bits. */
struct indices {
  const struct accel_input **inputs; /* owned; in the order of the program's */
  int n_inputs;
  struct accel_index *items; /* owned; in the order of their numbers */
  int count;
  int64_t width; /* numbers of a row */
};

/* What a program requires of its rows, or of the numbers in them of inputs without a file of their own: `arrays` are
 * these files, by input (NULL: all numbers). Freed by rt_indices_free, also after false. */
bool rt_indices_of(struct indices *indices, const struct accel_program *program, const char *const *arrays,
                   struct problem *problem);

void rt_indices_free(struct indices *indices);

/* What is asked of the numbers of an int32 input, the first of which is number `first` of a row. */
struct accel_index rt_index_of_input(const struct accel_input *input, int64_t first);

/* Whether a number is one that is asked for. */
bool rt_index_fits(const struct accel_index *index, double number);

/* The input that has number `number` of a row. */
int rt_input_of_number(const struct indices *indices, int64_t number);

/* The problem that one is not: `found`, as people read it, is number `number` of a row at `where`, "t.csv: line 3".
 * Always false. */
bool rt_index_problem(const struct indices *indices, const struct accel_index *index, int64_t number, const char *where,
                      const char *found, struct problem *problem);

#endif
