/* Terms: what a number of a program is, over the real numbers, in a form that two ways to write it share. A term is a
 * sum of products of powers of atoms: (a - b)^2 and a a - 2 a b + b b are one term. Equal terms are one pointer, where
 * numbers in them may differ by the rounding of a float32 (2^-23 of the number); whole numbers may not.
 *
 * What is used of the reals: the laws of a commutative ring, x^a x^b = x^(a + b), e^(a + b) = e^a e^b, ln(a b) = ln a +
 * ln b of positive numbers, tanh u = 2 sigmoid(2 u) - 1, and that sums are linear and may be divided. Roundings,
 * overflow and the sign of a zero are not in a term: a run of the function shows those. */
#ifndef ACCEL_VERIFY_PROOF_TERM_H
#define ACCEL_VERIFY_PROOF_TERM_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"

enum atom_kind {
  ATOM_VARIABLE, /* a whole number from 0 to count[0] - 1: the iteration of a loop */
  ATOM_BOUND,    /* such a variable of a sum: `which` says of which one */
  ATOM_READ,     /* the number at byte args[0] of memory `which`, as it was at first */
  ATOM_CARRIED,  /* the same as an earlier iteration of loop count[0] left it */
  ATOM_CALL,     /* function `which` of args[0] */
  ATOM_EXP,      /* e^args[0]: one product without a number */
  ATOM_BASE,     /* args[0], a sum, under a power that is no positive whole number */
  ATOM_SUM,      /* the sum of args[0] over n variables */
  ATOM_MOST,     /* its largest one */
  ATOM_POSITIVE, /* 1 where args[0] > 0, else 0 */
  ATOM_ZERO      /* 1 where args[0] = 0, else 0 */
};

enum term_function { TERM_SIGMOID, TERM_NORMAL, TERM_SIN, TERM_COS, TERM_LOG, TERM_WHOLE, TERM_FLOOR };

enum { MOST_SUMMED = 4 };

struct atom {
  enum atom_kind kind;
  int serial, which;
  int n; /* variables of a sum */
  int64_t count[MOST_SUMMED];
  const struct term *arg; /* NULL: it has none */
  int level;              /* the highest number of a bound variable in it; 0: none */
  const struct atom *next;
};

struct power {
  const struct atom *atom;
  double power;
};

struct product {
  double factor;
  int count;
  const struct power *powers; /* by the serial numbers of their atoms */
};

struct term {
  int serial;
  int count;
  const struct product *products;
  int level;
  const struct term *next;
};

struct terms;

/* An empty set; `arena` owns all of its terms. */
struct terms *terms_in(struct arena *arena);

/* Why a term could not be made, from when on all terms mean nothing; NULL: all could. */
const char *terms_failure(const struct terms *terms);
void terms_fail(struct terms *terms, const char *why);
void terms_forget_failure(struct terms *terms);

const struct term *term_number(struct terms *terms, double x);
const struct term *term_add(struct terms *terms, const struct term *a, const struct term *b);
const struct term *term_subtract(struct terms *terms, const struct term *a, const struct term *b);
const struct term *term_scale(struct terms *terms, const struct term *a, double by);
const struct term *term_multiply(struct terms *terms, const struct term *a, const struct term *b);
const struct term *term_power(struct terms *terms, const struct term *a, double power);
const struct term *term_divide(struct terms *terms, const struct term *a, const struct term *b);

/* Functions: e^a and ln a; others; the larger one; 1 where a > 0 or a = 0; one of two by a condition of 1 or 0. */
const struct term *term_exp(struct terms *terms, const struct term *a);
const struct term *term_log(struct terms *terms, const struct term *a);
const struct term *term_call(struct terms *terms, enum term_function function, const struct term *a);
const struct term *term_tanh(struct terms *terms, const struct term *a);
const struct term *term_larger(struct terms *terms, const struct term *a, const struct term *b);
const struct term *term_positive(struct terms *terms, const struct term *a);
const struct term *term_zero(struct terms *terms, const struct term *a);
const struct term *term_select(struct terms *terms, const struct term *condition, const struct term *a,
                               const struct term *b);

/* A number of which nothing is known, always the same one: for slopes. */
const struct term *term_symbol(struct terms *terms);

/* A variable as a term. */
const struct term *term_of_variable(struct terms *terms, const struct atom *variable);

/* A new variable of so many values, and what a term is where it has a value. */
const struct term *term_variable(struct terms *terms, int64_t count);
const struct term *term_with(struct terms *terms, const struct term *a, const struct atom *variable,
                             const struct term *value);

/* The sum of a term over a variable, and the largest. */
const struct term *term_sum(struct terms *terms, const struct term *a, const struct atom *variable);
const struct term *term_most(struct terms *terms, const struct term *a, const struct atom *variable);

/* The number at a byte of memory, and as earlier iterations of a loop left it. */
const struct term *term_read(struct terms *terms, int memory, const struct term *byte);
const struct term *term_carried(struct terms *terms, int memory, int loop, const struct term *byte);

/* The slope of a term by a variable, of which it is a function by powers and calls alone. */
const struct term *term_slope(struct terms *terms, const struct term *a, const struct atom *variable);

/* ---- What is known of a term ---- */

/* The only atom of a term that is one atom; NULL: it is none. */
const struct atom *term_atom(const struct term *a);

/* Whether it is a number: *x. */
bool term_is_number(const struct term *a, double *x);

/* Whether an atom, or one of the same kind for memory `which` and a loop, is anywhere in it. */
bool term_has(const struct term *a, const struct atom *atom);
bool term_has_carried(const struct term *a, int loop);

/* Bounds of a term of whole numbers; infinite ones where nothing is known. */
void term_range(const struct term *a, double *low, double *high);

/* a = by quotient + rest with 0 <= rest < by, of whole numbers. False: it is not known to be so divided. */
bool term_divided(struct terms *terms, const struct term *a, double by, const struct term **quotient,
                  const struct term **rest);

#endif
