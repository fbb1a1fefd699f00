/* Rows of numbers, wherever they are: in a table in memory, or in arrays of mapped files. */
#ifndef RUNTIME_DATA_ROWS_H
#define RUNTIME_DATA_ROWS_H

#include "runtime/base/problem.h"
#include "runtime/data/csv.h"
#include "runtime/data/indices.h"
#include "runtime/data/npy.h"

enum { MOST_INPUTS = 32 };

/* Where the numbers of an input are. */
struct field {
  enum npy_type type;
  const uint8_t *elements;
  int64_t stride;   /* elements from one row to the next */
  const char *path; /* of its file, for messages */
};

struct rows {
  int64_t count;
  const struct accel_input *inputs; /* the program's */
  int n_inputs;
  struct field fields[MOST_INPUTS]; /* by input */
};

/* Rows to be added to, of a program's inputs. */
struct rows rt_rows_begin(const struct accel_program *program);

/* Adds a table, which has the numbers of the inputs of `indices`, one input after the other. */
void rt_rows_add_table(struct rows *rows, const struct table *table, const struct indices *indices, const char *path);

/* Adds what an array has of an input: a row for each index of its first dimension, whose other dimensions make the
 * input's width. There are as many rows as in what was added before. */
bool rt_rows_add_array(struct rows *rows, int input, const struct npy *array, const char *path,
                       struct problem *problem);

/* Copies the numbers of an input: as float32 or as int32, as the input's dtype is. False where an int32 is not what the
 * input asks for; `*found` is that number then. */
bool rt_rows_load(const struct rows *rows, int64_t row, int input, void *values, double *found);

/* Whether rows first … first + count - 1 hold what `indices` requires of them. */
bool rt_rows_check(const struct rows *rows, int64_t first, int64_t count, const struct indices *indices,
                   struct problem *problem);

#endif
