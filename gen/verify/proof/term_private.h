/* For the files of terms alone. */
#ifndef ACCEL_VERIFY_PROOF_TERM_PRIVATE_H
#define ACCEL_VERIFY_PROOF_TERM_PRIVATE_H

#include "gen/verify/proof/term.h"

enum { BUCKETS = 4096, MOST_PRODUCTS = 1500 };

struct terms {
  struct arena *arena;
  const struct atom *atoms[BUCKETS];
  const struct term *terms[BUCKETS];
  int n_atoms, n_terms, n_variables;
  const char *failure;
};

/* The atom that is like this one, which is copied where there is none. */
const struct atom *atom_like(struct terms *terms, struct atom wanted);
/* The same without a copy; NULL: there is none. */
const struct atom *atom_found(const struct terms *terms, const struct atom *wanted);

/* Whether it is 1 or 0 by a condition. */
bool atom_is_condition(const struct atom *atom);

/* factor atom^power as a term. */
const struct term *term_of(struct terms *terms, const struct atom *atom, double power, double factor);

/* A product as a term. */
const struct term *term_of_product(struct terms *terms, const struct product *product);

#endif
