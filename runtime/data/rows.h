/* Rows of features with a label each, wherever they are: a table in memory, or arrays in mapped files. */
#ifndef RUNTIME_DATA_ROWS_H
#define RUNTIME_DATA_ROWS_H

#include "runtime/base/problem.h"
#include "runtime/data/csv.h"
#include "runtime/data/indices.h"
#include "runtime/data/npy.h"

struct rows {
  int64_t count, width; /* features of a row */
  enum npy_type type, label_type;
  const uint8_t *features, *labels;
  int64_t stride, label_stride; /* elements from one row to the next */
};

/* All columns but the last are features; the last is the label. */
struct rows rt_rows_of_table(const struct table *table);

/* The rows of an array of features, whose dimensions after the first make `width` of them, with an array of as many
 * labels. The paths are for messages. */
bool rt_rows_of_arrays(struct rows *rows, const struct npy *features, const char *path, const struct npy *labels,
                       const char *labels_path, int64_t width, struct problem *problem);

/* Copies the features of a row, unless `features` is NULL, and gives its label. */
double rt_rows_load(const struct rows *rows, int64_t row, float *features);

/* Whether rows first … first + count - 1 hold what `indices` requires of their columns. The paths, of features and of
 * labels, are for messages. */
bool rt_rows_check(const struct rows *rows, int64_t first, int64_t count, const struct indices *indices,
                   const char *path, const char *labels_path, struct problem *problem);

#endif
