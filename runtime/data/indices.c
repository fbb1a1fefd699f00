#include "runtime/data/indices.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct accel_index rt_index_of_input(const struct accel_input *input, int64_t first) {
  return (struct accel_index){first, input->width, input->below, input->none};
}

static void add_input(struct indices *indices, const struct accel_program *program, const struct accel_input *input,
                      int64_t first) {
  int64_t moved = indices->width - first;
  for (int i = 0; i < program->n_indices; i++) {
    struct accel_index index = program->indices[i];
    if (index.first < first || index.first >= first + input->width) continue;
    index.first += moved;
    indices->items[indices->count++] = index;
  }
  if (input->dtype == ACCEL_INT32) indices->items[indices->count++] = rt_index_of_input(input, indices->width);
  indices->inputs[indices->n_inputs++] = input;
  indices->width += input->width;
}

bool rt_indices_of(struct indices *indices, const struct accel_program *program, const char *const *arrays,
                   struct problem *problem) {
  size_t inputs = (size_t)program->n_inputs, most = (size_t)program->n_indices + inputs;
  *indices = (struct indices){.inputs = calloc(inputs + 1, sizeof *indices->inputs),
                              .items = calloc(most + 1, sizeof *indices->items)};
  if (indices->items == NULL || indices->inputs == NULL) return rt_problem(problem, "no memory for %zu columns", most);
  int64_t first = 0;
  for (int i = 0; i < program->n_inputs; i++) {
    const struct accel_input *input = &program->inputs[i];
    if (arrays == NULL || arrays[i] == NULL) add_input(indices, program, input, first);
    first += input->width;
  }
  return true;
}

void rt_indices_free(struct indices *indices) {
  free(indices->inputs);
  free(indices->items);
  *indices = (struct indices){0};
}

bool rt_index_fits(const struct accel_index *index, double number) {
  if (number != floor(number)) return false;
  if (index->below == 0) return number >= INT32_MIN && number <= INT32_MAX;
  return (number >= 0 && number < (double)index->below) || number == (double)index->none;
}

int rt_input_of_number(const struct indices *indices, int64_t number) {
  int input = 0;
  for (int64_t end = 0; input + 1 < indices->n_inputs; input++) {
    end += indices->inputs[input]->width;
    if (number < end) break;
  }
  return input;
}

/* "column 3", as in a table without names; "column 'price'"; "input 'image'" of an array. */
static void name_number(const struct indices *indices, int64_t number, char *out, size_t size) {
  const struct accel_input *input = indices->inputs[rt_input_of_number(indices, number)];
  if (input->column != NULL)
    snprintf(out, size, "column '%s'", input->column);
  else
    snprintf(out, size, "column %" PRId64, number + 1);
}

bool rt_index_problem(const struct indices *indices, const struct accel_index *index, int64_t number, const char *where,
                      const char *found, struct problem *problem) {
  char none[64] = "", name[200];
  const struct accel_input *input = indices->inputs[rt_input_of_number(indices, number)];
  name_number(indices, number, name, sizeof name);
  if (index->none != 0) snprintf(none, sizeof none, ", nor %" PRId64 ", which the loss leaves out", index->none);
  if (index->below == 0) {
    rt_problem(problem, "%s, %s: %s is not a whole number of 32 bits", where, name, found);
    return rt_help(problem, "correct the data, or give the input '%s' the dtype float32", input->name);
  }
  if (strcmp(input->name, "labels") == 0) {
    rt_problem(problem, "%s: label %s is not a class number below %" PRId64 "%s", where, found, index->below, none);
    return rt_help(problem, "number the classes from 0, or raise the model's number of classes");
  }
  rt_problem(problem, "%s, %s: %s is not a whole number below %" PRId64 " from 0 on%s", where, name, found,
             index->below, none);
  return rt_help(problem, "the model looks something up by this number: correct the data, or give the model a larger "
                          "table in model.config");
}
