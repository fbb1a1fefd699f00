#include "runtime/data/rows.h"

#include <inttypes.h>
#include <stdio.h>

struct rows rt_rows_begin(const struct accel_program *program) {
  return (struct rows){.inputs = program->inputs, .n_inputs = program->n_inputs};
}

void rt_rows_add_table(struct rows *rows, const struct table *table, const struct indices *indices, const char *path) {
  const uint8_t *cells = (const uint8_t *)table->cells;
  rows->count = table->rows;
  for (int i = 0, next = 0; i < rows->n_inputs && next < indices->n_inputs; i++) {
    const struct accel_input *input = &rows->inputs[i];
    if (indices->inputs[next] != input) continue;
    rows->fields[i] = (struct field){input->dtype == ACCEL_INT32 ? NPY_I4 : NPY_F4, cells, indices->width, path};
    if (cells != NULL) cells += (size_t)input->width * sizeof *table->cells;
    next++;
  }
}

bool rt_rows_add_array(struct rows *rows, int input, const struct npy *array, const char *path,
                       struct problem *problem) {
  const struct accel_input *of = &rows->inputs[input];
  int64_t has = 1;
  for (int i = 1; i < array->rank; i++)
    if (__builtin_mul_overflow(has, array->shape[i], &has)) has = INT64_MAX; /* of an array without rows */
  if (array->rank < 1 || has != of->width) {
    rt_problem(problem, "%s: a row of the array has %" PRId64 " numbers, not %" PRId64, path, has, of->width);
    return rt_help(problem, "give '%s' the array's dimensions after the first, or their product as data.features",
                   of->name);
  }
  for (int i = 0; i < rows->n_inputs; i++) {
    if (rows->fields[i].path == NULL || rows->count == array->shape[0]) continue;
    rt_problem(problem, "%s: %" PRId64 " rows for the %" PRId64 " rows of %s", path, array->shape[0], rows->count,
               rows->fields[i].path);
    return rt_help(problem, "give arrays of as many rows, in the same order");
  }
  rows->count = array->shape[0];
  rows->fields[input] = (struct field){array->type, array->elements, of->width, path};
  return true;
}

/* Number `number` of a row of an input, exact but for integers above 2^53. */
static double number_at(const struct rows *rows, int64_t row, int input, int64_t number) {
  const struct field *field = &rows->fields[input];
  return rt_npy_at(field->type, field->elements, row * field->stride + number);
}

bool rt_rows_load(const struct rows *rows, int64_t row, int input, void *values, double *found) {
  const struct accel_input *of = &rows->inputs[input];
  const struct field *field = &rows->fields[input];
  if (of->dtype == ACCEL_FLOAT32) {
    rt_npy_read(field->type, field->elements, row * field->stride, of->width, values);
    return true;
  }
  const struct accel_index index = rt_index_of_input(of, 0);
  int32_t *integers = values;
  for (int64_t i = 0; i < of->width; i++) {
    *found = number_at(rows, row, input, i);
    if (!rt_index_fits(&index, *found)) return false;
    integers[i] = (int32_t)*found;
  }
  return true;
}

/* ---- What is asked of rows ---- */

/* A number of a row: the input that has it, and which one of that. */
struct position {
  int input;
  int64_t number;
};

static struct position position_of(const struct indices *indices, int64_t number) {
  int input = rt_input_of_number(indices, number);
  for (int i = 0; i < input; i++) number -= indices->inputs[i]->width;
  return (struct position){input, number};
}

/* The first number of a row, from `index->first` on, that is not what is asked for; after the last one where all are.
 */
static int64_t wrong_number(const struct rows *rows, int64_t row, const struct indices *indices,
                            const struct accel_index *index) {
  struct position at = position_of(indices, index->first); /* an item is of one input */
  int64_t i = 0;
  while (i < index->count && rt_index_fits(index, number_at(rows, row, at.input, at.number + i))) i++;
  return index->first + i;
}

static bool row_fits(const struct rows *rows, int64_t row, const struct indices *indices) {
  for (int i = 0; i < indices->count; i++) {
    const struct accel_index *index = &indices->items[i];
    if (wrong_number(rows, row, indices, index) < index->first + index->count) return false;
  }
  return true;
}

static bool refuse_row(const struct rows *rows, int64_t row, const struct indices *indices, struct problem *problem) {
  char where[400], found[40];
  for (int i = 0; i < indices->count; i++) {
    const struct accel_index *index = &indices->items[i];
    int64_t number = wrong_number(rows, row, indices, index);
    if (number == index->first + index->count) continue;
    struct position at = position_of(indices, number);
    snprintf(where, sizeof where, "%s: row %" PRId64, rows->fields[at.input].path, row + 1);
    snprintf(found, sizeof found, "%.17g", number_at(rows, row, at.input, at.number));
    return rt_index_problem(indices, index, number, where, found, problem);
  }
  return true;
}

bool rt_rows_check(const struct rows *rows, int64_t first, int64_t count, const struct indices *indices,
                   struct problem *problem) {
  int64_t wrong = first + count;
#pragma omp parallel for reduction(min : wrong)
  for (int64_t row = first; row < first + count; row++)
    if (row < wrong && !row_fits(rows, row, indices)) wrong = row;
  return wrong == first + count || refuse_row(rows, wrong, indices, problem);
}
