/* Reading: a model's C, compiled by a compiler and run over the functions of accel/model.h in float64. */
#ifndef ACCEL_VERIFY_TAPE_READING_H
#define ACCEL_VERIFY_TAPE_READING_H

#include "gen/verify/tape/tape.h"

/* A function of accel/model.h, by its name. */
struct reading_function {
  const char *name;
  void (*function)(void);
};

/* All of them, and their number. */
extern const struct reading_function reading_functions[];
extern const int reading_function_count;

/* Runs what calls functions of a model. False when the reading refused something: reading->refused says what. */
bool reading_run(struct reading *reading, void (*run)(void *context), void *context);

/* The scope in which a model is called. */
scope reading_scope(struct reading *reading);

/* A tensor that the data give, from `values`, which are copied. */
tensor reading_input(int rank, const int64_t *dim, bool whole, const double *values);

/* Frees the parameters. */
void reading_free(struct reading *reading);

#endif
