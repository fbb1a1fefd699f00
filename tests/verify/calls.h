/* A program that calls functions of accel/model.h in the second reading: test_functions.py writes the calls after it. A
 * case has tensors, in the order of a file: those named in... are given by the data, the others are parameters. */
#include "gen/verify/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/tape/reading.h"

enum { MOST_TENSORS = 40 };

struct given {
  const char *name;
  int rank;
  int64_t dim[8];
  bool whole;
  double *values;
};

struct call {
  tensor (*function)(scope s);
  int count;
  struct given tensors[MOST_TENSORS]; /* the last one: the weights of the result */
};

static struct call *current;

static double start_value(struct reading *reading, const struct stored *stored, int64_t i) {
  (void)reading;
  for (int k = 0; k < current->count; k++)
    if (strcmp(current->tensors[k].name, stored->name) == 0) return current->tensors[k].values[i];
  return 0;
}

/* Tensor number k of the case, as its function takes it. */
static tensor T(scope s, int k) {
  const struct given *given = &current->tensors[k];
  const int64_t *d = given->dim;
  if (strncmp(given->name, "in", 2) == 0 || strcmp(given->name, "weights") == 0)
    return reading_input(given->rank, d, given->whole, given->values);
  return parameter_of(s, given->name, given->rank, (int)d[0], (int)d[1], (int)d[2], (int)d[3], (int)d[4]);
}

static void print(const char *name, const double *values, int64_t count) {
  printf("%s", name);
  for (int64_t i = 0; i < count; i++) printf(" %.17g", values[i]);
  putchar('\n');
}

static void run(void *context) {
  struct reading *reading = context;
  scope s = reading_scope(reading);
  tensor y = current->function(s);
  print("y", y->values, y->count);
  tape_backward(sum_all(mul(y, T(s, current->count - 1))), 1);
  for (struct stored *at = reading->first; at != NULL; at = at->next)
    if (at->gradient != NULL) print(at->name, at->gradient, at->count);
}

/* Reads the tensors of a case, doubles in a row. */
static void read_values(FILE *file) {
  for (int k = 0; k < current->count; k++) {
    struct given *given = &current->tensors[k];
    size_t count = 1;
    for (int i = 0; i < given->rank; i++) count *= (size_t)given->dim[i];
    given->values = calloc(count + 1, sizeof *given->values);
    if (given->values == NULL || fread(given->values, sizeof *given->values, count, file) != count) exit(2);
  }
}

static int run_calls(struct call *calls, int count, const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return 2;
  for (int i = 0; i < count; i++) {
    struct reading reading = {.training = true, .start_value = start_value};
    current = &calls[i];
    read_values(file);
    printf("case %d\n", i);
    if (!reading_run(&reading, run, &reading)) printf("refused %s\n", reading.refused);
    tape_clear(&reading);
    reading_free(&reading);
  }
  return 0;
}
