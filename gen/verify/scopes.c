/* Scopes and parameters, and the layers that are no more than parameters and products. */
#include "gen/verify/names.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/adapters.h"
#include "gen/verify/layers.h"
#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/known.h"
#include "gen/verify/tape/reading.h"
#include "gen/verify/tape/tape.h"

/* ---- Scopes ---- */

struct accel_scope {
  char name[300]; /* with a dot at its end, or "" */
  bool given;     /* whether a start was given */
  int start;
  double a, b;
};

static scope scope_below(scope s) {
  scope below = tape_memory(1, sizeof *below);
  if (s != NULL) *below = *s;
  return below;
}

scope reading_scope(struct reading *reading) {
  reading_now = reading;
  return scope_below(NULL);
}

scope at(scope s, const char *name) {
  scope below = scope_below(s);
  int length = snprintf(below->name, sizeof below->name, "%s%s.", s->name, name);
  if (length >= (int)sizeof below->name) tape_refuse("at: the name of a scope is too long");
  return below;
}

scope nth(scope s, const char *name, int i) {
  char numbered[200];
  snprintf(numbered, sizeof numbered, "%s.%d", name, i);
  return at(s, numbered);
}

static scope starting(scope s, int start, double a, double b) {
  scope below = scope_below(s);
  below->given = true;
  below->start = start;
  below->a = a;
  below->b = b;
  return below;
}

scope init_normal(scope s, double deviation) {
  return starting(s, START_NORMAL, 0, deviation);
}

scope init_uniform(scope s, double bound) {
  return starting(s, START_UNIFORM, -bound, bound);
}

scope init_zeros(scope s) {
  return starting(s, START_ZEROS, 0, 0);
}

scope init_ones(scope s) {
  return starting(s, START_ONES, 0, 0);
}

scope init_constant(scope s, double value) {
  return starting(s, START_CONSTANT, value, value);
}

scope init_sinusoid(scope s, double ratio) {
  return starting(s, START_SINUSOID, ratio, 0);
}

scope init_sinusoid_grid(scope s, double ratio, int side) {
  return starting(s, START_SINUSOID, ratio, side);
}

/* ---- Parameters ---- */

/* The numbers that a parameter starts with. Each draws as many as the first one. */
static void start(struct reading *reading, struct stored *stored) {
  const uint64_t first = reading->state;
  if (stored->count == 0) return;
  stored->values[0] = reading->start_value(reading, stored, 0);
  const uint64_t each = reading->state - first;
#pragma omp parallel if (stored->count > 100000)
  {
    struct reading own = {0};
#pragma omp for schedule(static)
    for (int64_t i = 1; i < stored->count; i++) {
      own.state = first + (uint64_t)i * each;
      stored->values[i] = reading->start_value(&own, stored, i);
    }
  }
  reading->state = first + (uint64_t)stored->count * each;
}

static struct stored *stored_new(struct reading *reading, const char *name, int rank, const int64_t *dim, bool trained,
                                 struct accel_scope how) {
  struct stored *stored = calloc(1, sizeof *stored);
  if (stored == NULL) tape_refuse("there is not enough memory for the parameters");
  stored->name = strdup(name);
  stored->rank = rank;
  stored->count = 1;
  for (int i = 0; i < rank; i++) {
    stored->dim[i] = dim[i];
    stored->count *= dim[i];
  }
  stored->trained = trained;
  stored->start = how.start;
  stored->a = how.a;
  stored->b = how.b;
  stored->values = calloc((size_t)stored->count + 1, sizeof *stored->values);
  stored->gradient = trained ? calloc((size_t)stored->count + 1, sizeof *stored->gradient) : NULL;
  if (stored->values == NULL || (trained && stored->gradient == NULL))
    tape_refuse("there is not enough memory for the parameters");
  start(reading, stored);
  *(reading->last != NULL ? &reading->last->next : &reading->first) = stored;
  reading->last = stored;
  reading->count++;
  return stored;
}

void reading_free(struct reading *reading) {
  for (struct stored *at = reading->first, *next; at != NULL; at = next) {
    next = at->next;
    free((char *)at->name);
    free(at->values);
    free(at->gradient);
    free(at);
  }
  while (reading->tables != NULL) {
    struct known_table *table = reading->tables;
    reading->tables = table->next;
    free(table);
  }
  while (reading->convolutions != NULL) {
    struct known_convolution *convolution = reading->convolutions;
    reading->convolutions = convolution->next;
    free(convolution);
  }
  reading->first = reading->last = NULL;
  reading->count = 0;
}

/* Of the same full name the same parameter: its tensor on the tape, or a new one of what is stored. */
static tensor parameter_in(scope s, const char *name, int rank, const int64_t *dim, bool trained,
                           struct accel_scope how) {
  char full[600];
  snprintf(full, sizeof full, "%s%s", s->name, name);
  struct stored *stored = reading_now->first;
  while (stored != NULL && strcmp(stored->name, full) != 0) stored = stored->next;
  if (stored == NULL) stored = stored_new(reading_now, full, rank, dim, trained, how);
  for (tensor x = reading_now->tape; x != NULL; x = x->next)
    if (x->stored == stored) return x;
  tensor x = tape_new(rank, dim);
  if (x->count != stored->count) tape_refuse("the parameter %s has several shapes", full);
  memcpy(x->values, stored->values, (size_t)x->count * sizeof *x->values);
  x->stored = stored;
  x->varies = stored->trained;
  if (reading_now->narrow && stored->trained) tape_move(x->values, x->count, reading_now->noise);
  return x;
}

static tensor parameter_start(scope s, const char *name, int rank, const int64_t *dim, int start, double a, double b) {
  struct accel_scope how = {.start = start, .a = a, .b = b};
  return parameter_in(s, name, rank, dim, true, how);
}

tensor parameter_fixed(scope s, const char *name, int64_t count, bool one) {
  return parameter_start(s, name, 1, &count, one ? START_ONES : START_ZEROS, 0, 0);
}

tensor buffer_fixed(scope s, const char *name, int rank, int64_t count, bool one) {
  struct accel_scope how = {.start = one ? START_ONES : START_ZEROS};
  return parameter_in(s, name, rank, &count, false, how);
}

/* By the scope's start where it has one. */
tensor parameter_of_layer(scope s, const char *name, int rank, const int64_t *dim, int start, double a, double b) {
  return s->given ? parameter_start(s, name, rank, dim, s->start, s->a, s->b)
                  : parameter_start(s, name, rank, dim, start, a, b);
}

tensor parameter_of(scope s, const char *name, int rank, ...) {
  int64_t dim[MOST_AXES];
  va_list list;
  va_start(list, rank);
  for (int i = 0; i < rank && i < MOST_AXES; i++) dim[i] = va_arg(list, int);
  va_end(list);
  return parameter_of_layer(s, name, rank, dim, START_ZEROS, 0, 0);
}

tensor buffer_of(scope s, const char *name, int rank, ...) {
  int64_t dim[MOST_AXES];
  va_list list;
  va_start(list, rank);
  for (int i = 0; i < rank && i < MOST_AXES; i++) dim[i] = va_arg(list, int);
  va_end(list);
  struct accel_scope how = s->given ? *s : (struct accel_scope){.start = START_ZEROS};
  return parameter_in(s, name, rank, dim, false, how);
}

tensor reading_input(int rank, const int64_t *dim, bool whole, const double *values) {
  tensor x = tape_new(rank, dim);
  x->whole = whole;
  memcpy(x->values, values, (size_t)x->count * sizeof *values);
  return x;
}

/* ---- Layers ---- */

tensor embedding(scope s, tensor tokens, int vocab, int width) {
  const int64_t dim[] = {vocab, width};
  if (tokens->of[0] == NULL && vocab > reading_now->vocabulary) reading_now->vocabulary = vocab;
  return take(parameter_of_layer(s, "weight", 2, dim, START_NORMAL, 0, 1), tokens);
}

/* A bias: as the weight starts where the scope says nothing, else 0. */
tensor bias_of_layer(scope s, int64_t count, double bound) {
  return s->given ? parameter_fixed(s, "bias", count, false)
                  : parameter_start(s, "bias", 1, &count, START_UNIFORM, -bound, bound);
}

/* What the adapter of a layer adds: s x A^T B^T. */
static tensor adapted(scope s, tensor x, tensor y, int64_t in, int64_t out) {
  const struct job *job = reading_now->job;
  const int64_t rank = job->model.lora.rank, of_a[] = {rank, in}, of_b[] = {out, rank};
  const double bound = 1 / sqrt((double)in);
  tensor a = parameter_start(s, "lora_A.weight", 2, of_a, START_UNIFORM, -bound, bound);
  tensor b = parameter_start(s, "lora_B.weight", 2, of_b, START_ZEROS, 0, 0);
  return add(y, scale(matmul_transposed(matmul_transposed(x, a), b), reading_adapter_scale(job)));
}

static bool has_adapter(scope s) {
  char module[sizeof s->name];
  const size_t length = strlen(s->name);
  if (reading_now->job == NULL || length == 0) return false;
  snprintf(module, sizeof module, "%.*s", (int)length - 1, s->name);
  return reading_adapts(reading_now->job, module);
}

static tensor layer(scope s, tensor x, int out, bool in_out, bool bias) {
  const int64_t in = columns_of(x), columns = out, dim[] = {in_out ? in : columns, in_out ? columns : in};
  const double bound = 1 / sqrt((double)in);
  tensor weight = parameter_of_layer(s, "weight", 2, dim, START_UNIFORM, -bound, bound);
  int64_t result[MOST_AXES];
  for (int i = 0; i < x->rank; i++) result[i] = i == x->rank - 1 ? columns : x->dim[i];
  tensor rows = reshape_to(x, 2, (int)(x->count / in), (int)in);
  tensor y = in_out ? matmul(rows, weight) : matmul_transposed(rows, weight);
  weight->stored->in_out = in_out;
  if (has_adapter(s)) y = adapted(s, rows, y, in, columns);
  if (bias) y = add(y, bias_of_layer(s, columns, bound));
  return reshaped(y, x->rank, result);
}

tensor linear(scope s, tensor x, int out) {
  return layer(s, x, out, false, true);
}

tensor linear_no_bias(scope s, tensor x, int out) {
  return layer(s, x, out, false, false);
}

tensor linear_transposed(scope s, tensor x, int out) {
  return layer(s, x, out, true, true);
}
