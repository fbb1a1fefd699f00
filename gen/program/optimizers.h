/* Optimizers: what is known of each one. Its arithmetic is in templates/program/optimizer/NAME.c.j2.
 *
 * CONTRIBUTING.md says how to add one; update.c.j2 next to the templates says what a template has. */
#ifndef ACCEL_PROGRAM_OPTIMIZERS_H
#define ACCEL_PROGRAM_OPTIMIZERS_H

#include "gen/ir/op.h"
#include "gen/program/program.h"

enum { MAX_OPTIMIZER_STATES = 4 };

/* What the update of an element depends on. */
enum optimizer_reach {
  BY_ELEMENT, /* that element alone */
  BY_TENSOR,  /* its parameter */
  BY_MATRIX   /* its parameter, where that is a matrix; adamw steps all others */
};

struct optimizer {
  const char *name;
  const char *states[MAX_OPTIMIZER_STATES]; /* float32 numbers stored for each weight, as PyTorch calls them */
  enum optimizer_reach reach;
  /* Where set, it stores averages over rows and over columns, and for fewer than two dimensions a number an element:
   * their names. */
  const char *factors[3];
  bool averages;     /* the model is an average of what is trained; its first state begins as the weights */
  bool coupled;      /* weight decay is a part of the gradient; else it shrinks the weight directly (decoupled) */
  bool in_backward;  /* a parameter is updated as soon as its gradient is there, which then is dropped */
  bool counts_steps; /* the rule depends on the step's number */
};

const struct optimizer *job_optimizer(const struct job *job);

/* The names of what the optimizer stores for each weight, options considered; returns how many. */
int optimizer_state_names(const struct job *job, const char *names[MAX_OPTIMIZER_STATES]);

/* How they are stored; float32 where there are none. */
enum state_dtype optimizer_state_dtype(const struct job *job);

/* With states of 8 bits: elements that share a scale, and elements from which on a parameter's states have 8 bits, both
 * as in bitsandbytes. Smaller parameters have float32 states. */
enum { STATE_BLOCK = 256, STATE_8BIT_FROM = 4096 };

/* Whether a state of this name is never negative, so that all of its 8 bits say how large it is. */
bool optimizer_state_is_size(const char *name);

/* How many these are. */
int optimizer_states(const struct job *job);

/* Whether a rule steps some parameters as a whole; whether these are the matrices. */
bool optimizer_is_by_tensor(const struct job *job);
bool optimizer_steps_matrices(const struct job *job);

/* Whether moments in float32 are those of some parameters only, and are packed. */
bool optimizer_packs_moments(const struct job *job);

/* Whether the update depends on the step's number, the learning rate aside. */
bool optimizer_counts_steps(const struct job *job);

/* The largest number of elements of the matmuls within the update: of a matrix that it steps, and of the square of its
 * smaller dimension. Both 0 where it multiplies nothing. */
struct optimizer_gemms {
  int64_t matrix, square;
};
struct optimizer_gemms optimizer_gemms(const struct program *program);

/* The matmuls of a round in which a matrix is stepped. */
enum { GEMMS_OF_ROUND = 3 };
void optimizer_round(const struct flat_range *matrix, struct op_gemm gemms[GEMMS_OF_ROUND]);

/* Bytes of memory that the update needs while it runs: two such matrices and two such squares. */
int64_t optimizer_scratch(const struct program *program);

/* Whether two parameters are updated by the same numbers. */
bool same_numbers(const struct optimizer_numbers *a, const struct optimizer_numbers *b);

#endif
