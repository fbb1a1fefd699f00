#include "runtime/data/indices.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Above 2^24 a float32 cannot tell neighbouring numbers apart. */
static const int64_t below_any = (INT64_C(1) << 24) + 1;

struct accel_index rt_class_index(const struct accel_program *program) {
  int64_t below = program->classes > 0 ? program->classes : below_any;
  return (struct accel_index){program->features, 1, below, program->no_target};
}

bool rt_indices_of(struct indices *indices, const struct accel_program *program, struct problem *problem) {
  size_t count = (size_t)program->n_indices;
  *indices = (struct indices){.items = calloc(count + 1, sizeof *indices->items), .width = program->features};
  if (indices->items == NULL) return rt_problem(problem, "no memory for %zu columns", count);
  if (count > 0) memcpy(indices->items, program->indices, count * sizeof *indices->items);
  indices->count = program->n_indices;
  if (program->label_is_class) indices->items[indices->count++] = rt_class_index(program);
  return true;
}

void rt_indices_free(struct indices *indices) {
  free(indices->items);
  *indices = (struct indices){0};
}

bool rt_index_fits(const struct accel_index *index, double number) {
  if (number >= 0 && number < (double)index->below && number == floor(number)) return true;
  return number == (double)index->none;
}

bool rt_index_problem(const struct indices *indices, const struct accel_index *index, int64_t column, const char *where,
                      const char *number, struct problem *problem) {
  char none[64] = "";
  bool is_label = column == indices->width;
  if (index->none != 0) snprintf(none, sizeof none, ", nor %" PRId64 ", which the loss leaves out", index->none);
  if (is_label) {
    rt_problem(problem, "%s: label %s is not a class number below %" PRId64 "%s", where, number, index->below, none);
    return rt_help(problem, "number the classes from 0, or raise the model's number of classes");
  }
  rt_problem(problem, "%s, column %" PRId64 ": %s is not a whole number below %" PRId64 " from 0 on%s", where,
             column + 1, number, index->below, none);
  return rt_help(problem, "the model looks something up by this column: correct the data, or give the model a larger "
                          "table in model.config");
}
