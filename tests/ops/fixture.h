/* Fixture: calls one function of accel/model.h on random data: its result, its gradients, and the same by central
 * differences. */
#ifndef TESTS_OPS_FIXTURE_H
#define TESTS_OPS_FIXTURE_H

#include <stdio.h>

#include "gen/ir/builder.h"

/* Where random elements are. AWAY_FROM_ZERO and the two COMBs keep off each other's and zero's kinks. */
enum range { AROUND_ZERO, POSITIVE, AWAY_FROM_ZERO, COMB_A, COMB_B };

struct fixture_tensor {
  const char *name;
  struct shape shape;
  double *elements;
};

struct fixture {
  struct arena *arena;
  struct diagnostics diags;
  struct builder *builder;
  struct scope *root;
  uint64_t state;         /* of the random numbers */
  const int64_t *extents; /* [5]: those that random shapes have */
  struct {
    struct fixture_tensor *items;
    int count, capacity;
  } parameters; /* differentiable tensors, those that the function makes too */
  struct {
    struct fixture_tensor *items;
    int count, capacity;
  } inputs; /* integer tensors, and the weights of the result in the loss */
  struct argument arguments[20];
  int count;
};

/* An empty fixture; its numbers follow from `seed`. Freed by fixture_free. */
struct fixture *fixture_new(uint64_t seed);
void fixture_free(struct fixture *fixture);

/* Random numbers: an integer of [0, bound); an extent among `extents`, 1, 3, 5, 7, 17 unless others are set; a shape of
 * that rank with at most `most` elements. */
int64_t fixture_random(struct fixture *fixture, int64_t bound);
int64_t fixture_extent(struct fixture *fixture);
struct shape fixture_shape(struct fixture *fixture, int rank, int64_t most);

/* Arguments for the function, in order. Tensors are parameters of the graph, with random elements. */
struct value *fixture_tensor(struct fixture *fixture, struct shape shape, enum range range);
/* The same with no two elements that are closer than what central differences take; of at most 900 elements. */
void fixture_apart(struct fixture *fixture, struct shape shape);
void fixture_tokens(struct fixture *fixture, struct shape shape, int64_t bound);
/* An input, which has no gradient; its elements may be changed until another one is made. */
struct fixture_tensor *fixture_fixed(struct fixture *fixture, struct shape shape);
void fixture_scope(struct fixture *fixture);
void fixture_int(struct fixture *fixture, int64_t value);
void fixture_real(struct fixture *fixture, double value);
void fixture_string(struct fixture *fixture, const char *value);

/* Calls the function with the arguments; NULL after an error, which is then in fixture->diags. */
struct value *fixture_call(struct fixture *fixture, const char *function);

/* What came out of y = f(…) and of the loss sum(y * weights). */
struct fixture_result {
  struct graph *graph;
  const struct value *y_value;
  const double *y;
  const double **gradients; /* of fixture->parameters, in order; NULL where none flows */
  double worst;             /* the largest deviation from central differences, relative to 1 + |gradient| */
  const char *worst_name;
  const struct frame_data *frame; /* of the run of the function */
};
struct fixture_result fixture_measure(struct fixture *fixture, struct value *y);

/* The same without central differences: worst stays 0. */
struct fixture_result fixture_differentiate(struct fixture *fixture, struct value *y);

/* Evaluates all that leads to y, which becomes the entry's result. */
struct frame_data *fixture_run(struct fixture *fixture, struct value *y);

/* A tensor as a field of JSON. */
void fixture_print_tensor(FILE *out, const char *name, struct shape shape, const double *elements);

/* One line of JSON: the call, its tensors, its result and gradients. */
void fixture_print(FILE *out, const struct fixture *fixture, const char *function, const struct fixture_result *result);

#endif
