/* Lab: one function of accel/model.h on random data: its result, its gradients, and the same by central differences. */
#ifndef TESTS_OPS_LAB_H
#define TESTS_OPS_LAB_H

#include <stdio.h>

#include "gen/ir/builder.h"

/* Where random elements lie. AWAY_FROM_ZERO and the two COMBs keep off each other's and zero's kinks. */
enum range { AROUND_ZERO, POSITIVE, AWAY_FROM_ZERO, COMB_A, COMB_B };

struct lab_tensor {
  const char *name;
  struct shape shape;
  double *elements;
};

struct lab {
  struct arena *arena;
  struct diagnostics diags;
  struct builder *builder;
  struct scope *root;
  uint64_t state; /* of the random numbers */
  struct {
    struct lab_tensor *items;
    int count, capacity;
  } parameters; /* differentiable tensors, those that the function makes too */
  struct {
    struct lab_tensor *items;
    int count, capacity;
  } inputs; /* integer tensors, and the weights of the result in the loss */
  struct argument arguments[20];
  int count;
};

/* An empty lab; the numbers follow from `seed`. */
struct lab *lab_new(uint64_t seed);
void lab_free(struct lab *lab);

/* Random numbers: an integer of [0, bound); an extent among 1, 3, 5, 7, 17; a shape of that rank with at most `most`
 * elements. */
int64_t lab_random(struct lab *lab, int64_t bound);
int64_t lab_extent(struct lab *lab);
struct shape lab_shape(struct lab *lab, int rank, int64_t most);

/* Arguments for the function, in order. Tensors are parameters of the graph, with random elements. */
struct value *lab_tensor(struct lab *lab, struct shape shape, enum range range);
/* The same with no two elements that are closer than what central differences take; of at most 900 elements. */
void lab_apart(struct lab *lab, struct shape shape);
void lab_tokens(struct lab *lab, struct shape shape, int64_t bound);
/* An input, which has no gradient; its elements may be changed until another one is made. */
struct lab_tensor *lab_fixed(struct lab *lab, struct shape shape);
void lab_scope(struct lab *lab);
void lab_int(struct lab *lab, int64_t value);
void lab_real(struct lab *lab, double value);
void lab_string(struct lab *lab, const char *value);

/* Calls the function with the arguments; NULL after an error, which is then in lab->diags. */
struct value *lab_call(struct lab *lab, const char *function);

/* What came out of y = f(…) and of the loss sum(y * weights). */
struct lab_result {
  struct graph *graph;
  const struct value *y_value;
  const double *y;
  const double **gradients; /* of lab->parameters, in order; NULL where none flows */
  double worst;             /* the largest deviation from central differences, relative to 1 + |gradient| */
  const char *worst_name;
};
struct lab_result lab_measure(struct lab *lab, struct value *y);

/* One line of JSON: the call, its tensors, its result and gradients. */
void lab_print(FILE *out, const struct lab *lab, const char *function, const struct lab_result *result);

#endif
