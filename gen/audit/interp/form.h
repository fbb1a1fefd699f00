/* Forms: numbers that are linear in symbols, such as the counters of loops, and whether two of them may be near each
 * other. */
#ifndef ACCEL_AUDIT_INTERP_FORM_H
#define ACCEL_AUDIT_INTERP_FORM_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"

struct term {
  int symbol;
  int64_t factor; /* never 0 */
};

/* constant + the sum of factor * symbol, by symbol. */
struct form {
  int64_t constant;
  int n_terms;
  struct term terms[];
};

struct span {
  int64_t low, high;
};

/* NULL where a number is beyond what is followed, and where an operand is NULL. */
const struct form *form_constant(struct arena *arena, int64_t constant);
const struct form *form_symbol(struct arena *arena, int symbol);
const struct form *form_sum(struct arena *arena, const struct form *a, const struct form *b, int64_t factor_of_b);
const struct form *form_scaled(struct arena *arena, const struct form *form, int64_t factor);
const struct form *form_divided(struct arena *arena, const struct form *form, int64_t divisor); /* without rest */

bool form_equal(const struct form *a, const struct form *b);
int64_t form_factor(const struct form *form, int symbol); /* 0: it has no such term */
int64_t form_step(const struct form *form);               /* the greatest divisor of all factors; 0: it is a constant */

/* ---- Equations ---- */

/* factor * an integer of `span`. */
struct unknown {
  int64_t factor;
  struct span span;
  int dimension; /* which of the differences that must not all be 0 this is; -1: none of them */
  int sign;      /* 0: it is that difference; 1 and -1: the two numbers whose difference it is */
};

enum { FORM_MOST_UNKNOWNS = 40, FORM_MOST_DIMENSIONS = 16 };

struct equation {
  struct unknown unknowns[FORM_MOST_UNKNOWNS];
  int count;
  bool is_bound; /* one of the differences is not 0 */
  struct span sum;
};

enum solution { SOLUTION_NONE, SOLUTION_FOUND, SOLUTION_NOT_KNOWN };

/* Adds an unknown; of those without a dimension, the ones with the same factor become one. False: there are too many.
 */
bool equation_add(struct equation *equation, struct unknown unknown);

/* Whether the sum of all unknowns can be in equation->sum. */
enum solution equation_solve(struct equation *equation);

#endif
