#include "runtime/data/rows.h"

#include <inttypes.h>
#include <stdio.h>

struct rows rt_rows_of_table(const struct table *table) {
  const uint8_t *values = (const uint8_t *)table->values;
  int64_t width = table->columns - 1;
  return (struct rows){.count = table->rows,
                       .width = width,
                       .type = NPY_F4,
                       .label_type = NPY_F4,
                       .features = values,
                       .labels = values != NULL ? values + (size_t)width * sizeof(float) : NULL,
                       .stride = table->columns,
                       .label_stride = table->columns};
}

bool rt_rows_of_arrays(struct rows *rows, const struct npy *features, const char *path, const struct npy *labels,
                       const char *labels_path, int64_t width, struct problem *problem) {
  int64_t has = 1;
  for (int i = 1; i < features->rank; i++)
    if (__builtin_mul_overflow(has, features->shape[i], &has)) has = INT64_MAX; /* of an array without rows */
  if (features->rank < 1 || has != width) {
    rt_problem(problem, "%s: a row of the array has %" PRId64 " numbers, not %" PRId64, path, has, width);
    return rt_help(problem, "give data.features the product of the array's dimensions after the first");
  }
  if (labels->rank < 1 || labels->count != features->shape[0]) {
    rt_problem(problem, "%s: %" PRId64 " labels for the %" PRId64 " rows of %s", labels_path, labels->count,
               features->shape[0], path);
    return rt_help(problem, "give an array of one label for each row");
  }
  *rows = (struct rows){
      features->shape[0], width, features->type, labels->type, features->elements, labels->elements, width, 1};
  return true;
}

double rt_rows_load(const struct rows *rows, int64_t row, float *features) {
  if (features != NULL) rt_npy_read(rows->type, rows->features, row * rows->stride, rows->width, features);
  return rt_npy_at(rows->label_type, rows->labels, row * rows->label_stride);
}

/* Column `column` of a row, exact but for integers above 2^53. */
static double number_at(const struct rows *rows, int64_t row, int64_t column) {
  if (column == rows->width) return rt_npy_at(rows->label_type, rows->labels, row * rows->label_stride);
  return rt_npy_at(rows->type, rows->features, row * rows->stride + column);
}

/* The first column of a row, from `index->first` on, that does not hold what is asked of it; after the last one where
 * all do. */
static int64_t wrong_column(const struct rows *rows, int64_t row, const struct accel_index *index) {
  int64_t column = index->first;
  while (column < index->first + index->count && rt_index_fits(index, number_at(rows, row, column))) column++;
  return column;
}

static bool row_fits(const struct rows *rows, int64_t row, const struct indices *indices) {
  for (int i = 0; i < indices->count; i++) {
    const struct accel_index *index = &indices->items[i];
    if (wrong_column(rows, row, index) < index->first + index->count) return false;
  }
  return true;
}

static bool refuse_row(const struct rows *rows, int64_t row, const struct indices *indices, const char *path,
                       const char *labels_path, struct problem *problem) {
  char where[400], number[40];
  for (int i = 0; i < indices->count; i++) {
    const struct accel_index *index = &indices->items[i];
    int64_t column = wrong_column(rows, row, index);
    if (column == index->first + index->count) continue;
    snprintf(where, sizeof where, "%s: row %" PRId64, column == rows->width ? labels_path : path, row + 1);
    snprintf(number, sizeof number, "%.17g", number_at(rows, row, column));
    return rt_index_problem(indices, index, column, where, number, problem);
  }
  return true;
}

bool rt_rows_check(const struct rows *rows, int64_t first, int64_t count, const struct indices *indices,
                   const char *path, const char *labels_path, struct problem *problem) {
  int64_t wrong = first + count;
#pragma omp parallel for reduction(min : wrong)
  for (int64_t row = first; row < first + count; row++)
    if (row < wrong && !row_fits(rows, row, indices)) wrong = row;
  return wrong == first + count || refuse_row(rows, wrong, indices, path, labels_path, problem);
}
