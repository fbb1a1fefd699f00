#include "runtime/data/rows.h"

#include <inttypes.h>
#include <math.h>

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
  for (int i = 1; i < features->rank; i++) has *= features->shape[i];
  if (features->rank < 1 || has != width) {
    rt_problem(problem, "%s: a row of the array has %" PRId64 " numbers, not %" PRId64, path, has, width);
    return rt_help(problem, "give data.features the product of the array's dimensions behind the first");
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
  rt_npy_read(rows->type, rows->features, row * rows->stride, rows->width, features);
  return rt_npy_at(rows->label_type, rows->labels, row * rows->label_stride);
}

bool rt_rows_check_classes(const struct rows *rows, int64_t classes, const char *path, struct problem *problem) {
  for (int64_t row = 0; row < rows->count; row++) {
    double label = rt_npy_at(rows->label_type, rows->labels, row * rows->label_stride);
    /* Above 2^24 a float32 cannot tell neighbouring class numbers apart. */
    bool fits = label >= 0 && label == floor(label) && label <= 16777216.0;
    if (fits && (classes == 0 || label < (double)classes)) continue;
    rt_problem(problem, "%s: data row %" PRId64 ": label %g is not a class number below %" PRId64, path, row + 1, label,
               classes != 0 ? classes : 16777217);
    return rt_help(problem, "number the classes from 0, or raise the model's number of classes");
  }
  return true;
}
