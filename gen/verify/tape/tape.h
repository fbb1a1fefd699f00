/* Tape: the second reading's tensors, in float64, and how a gradient flows back through them. Each function of
 * accel/model.h is written here by its documented formula, over a few primitives with a reverse rule of their own;
 * nothing of gen/ops, gen/plan and gen/emit is used. */
#ifndef ACCEL_VERIFY_TAPE_TAPE_H
#define ACCEL_VERIFY_TAPE_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The runtime has another struct of that name. */
#define accel_tensor reading_tensor
#include "include/accel/model.h"
#undef accel_tensor

enum { MOST_AXES = 8, MOST_OPERANDS = 3 };

/* As many numbers are worth several threads. */
enum { MANY = 1 << 14 };

struct stored;
struct known_table;
struct known_convolution;
struct unary;
struct job;
struct trace;
struct draw;

/* A tensor of the reading. */
struct reading_tensor {
  int rank;
  int64_t dim[MOST_AXES];
  int64_t count;
  bool whole;       /* int32 */
  bool varies;      /* a parameter is below it, so that it has a gradient */
  bool is_view;     /* its numbers and gradient are those of of[0], under other extents */
  double *values;   /* [count] */
  double *gradient; /* [count]; NULL until something flows back */
  tensor of[MOST_OPERANDS];
  int64_t *places;            /* of a pick or a drop */
  double numbers[2];          /* constants of the rule */
  void (*backward)(tensor y); /* adds to the gradients of y->of; NULL: nothing flows back */
  const struct unary *rule;   /* of a unary function */
  double spread;              /* of the noise, see tape_end */
  tensor next;                /* the tensor that was made before it */
  struct stored *stored;      /* of a parameter */
  int64_t order;              /* its number in the trace, where there is one */
};

/* A parameter or buffer of the model, as it outlives an evaluation. */
struct stored {
  const char *name;
  int rank;
  int64_t dim[MOST_AXES];
  int64_t count;
  bool trained;     /* false: a buffer */
  int start;        /* enum start */
  double a, b;      /* of the start */
  double *values;   /* [count], which a step changes */
  double *gradient; /* [count], added up over evaluations; NULL of a buffer */
  struct stored *next;
  bool in_out; /* the weight of a layer with an adapter is [in][out], not [out][in] */
};

enum start { START_ZEROS, START_ONES, START_CONSTANT, START_NORMAL, START_UNIFORM, START_SINUSOID };

/* One reading of a model: its parameters in the order in which the model names them, and the tape at hand. */
struct reading {
  struct stored *first, *last;
  int count;
  tensor tape; /* the newest tensor */
  bool training;
  double noise;       /* how far numbers are moved, relative to their size; 0: not at all */
  uint64_t state;     /* of the noise */
  double counted;     /* targets that the cross-entropies of the evaluation counted */
  int entropies;      /* how many there were */
  bool narrow;        /* parameters are rounded before they are used, and so have noise, too */
  int64_t vocabulary; /* the most rows of an embedding whose tokens the data give */
  double (*start_value)(struct reading *reading, const struct stored *stored,
                        int64_t i); /* it draws from the state alone */
  const char *refused;              /* why the reading has stopped */
  double constants[32];             /* of functions of an element, such as the eps of a norm: what a formula may have */
  int n_constants;
  struct known_table *tables;             /* that the model gives, the newest first */
  struct known_convolution *convolutions; /* that it has */
  const struct job *job;                  /* that has adapters; NULL: there are none */
  struct trace *trace;                    /* what the model does is noted here; NULL: nowhere */
  const struct draw *draws;               /* [n_draws] the random numbers of a run, in their order */
  int64_t n_draws, drawn;                 /* of them in the run at hand */
  uint64_t key;                           /* of the random numbers of the run at hand */
};

/* The reading at hand; functions of a model have no parameter for it. */
extern struct reading *reading_now;

/* Stops the reading with a reason, which names the function; it does not return. */
_Noreturn void tape_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed memory that lives as long as the tape. */
void *tape_memory(int64_t count, int64_t size);

/* A new tensor of these extents. Its values are 0. */
tensor tape_new(int rank, const int64_t *dim);

/* The same of a tensor's extents. */
tensor tape_like(tensor x);

/* The numbers and the gradient of x, in their order, under other extents. */
tensor tape_view(tensor x, int rank, const int64_t *dim);

/* Ends the making of y from up to three operands: whether a gradient flows back follows from them. The values that were
 * computed are moved by the noise of the reading, `spread` times as far as one rounding is. Gives y. */
tensor tape_end(tensor y, void (*backward)(tensor y), double spread, tensor a, tensor b, tensor c);

/* The gradient of an operand, made where it is not there; NULL of one that does not vary. */
double *tape_gradient(tensor x);

/* Keeps the numbers of a table for as long as the reading lives. */
void tape_note_table(int64_t count, const double *numbers);

/* The same of the shape of a convolution. */
void tape_note_convolution(const struct known_convolution *shape);

/* A number within [-1, 1), of the reading's noise. */
double tape_draw(struct reading *reading);

/* Moves numbers by the reading's noise, up to `by` relative to their sizes. */
void tape_move(double *values, int64_t count, double by);

/* Adds to all parameters the gradient of a scalar, times `factor`. */
void tape_backward(tensor loss, double factor);

/* Frees the tape. Large pieces of it are kept for the next one. */
void tape_clear(struct reading *reading);

/* Frees what tape_clear kept. */
void tape_release(void);

/* ---- Primitives ---- */

/* y[i] = x[places[i]], or 0 where that is negative; y has the extents. */
tensor pick(tensor x, int rank, const int64_t *dim, int64_t *places);

/* y[places[i]] += x[i] over zeros; where that is negative it is left out. */
tensor drop(tensor x, int rank, const int64_t *dim, int64_t *places);

/* y[i] = f(x[i]); `slope` has the derivative at x[i], where y[i] is known, too. a and b are constants of both. */
typedef double unary_value(double x, double a, double b);
typedef double unary_slope(double x, double y, double a, double b);
struct unary {
  unary_value *value;
  unary_slope *slope;
};
tensor unary(tensor x, const struct unary *rule, double a, double b);

/* The axis that counts from the end where it is negative. */
int tape_axis(tensor x, int axis, const char *function);

/* The product of extents `from` up to `to`. */
int64_t extent(tensor x, int from, int to);

/* The last extent, and the number of rows that have it. */
int64_t columns_of(tensor x);
int64_t rows_of(tensor x);

/* x with each extent that is 1, or missing in front, repeated to those of `dim`. */
tensor expand(tensor x, int rank, const int64_t *dim, const char *function);

/* Sums over the last axis, which stays with extent 1, repeated to the extents of x. */
tensor row_sums(tensor x);

#endif
