/* Proofs: whether what a function of a program writes is, element by element, the term of a formula. */
#ifndef ACCEL_VERIFY_PROOF_PROOF_H
#define ACCEL_VERIFY_PROOF_PROOF_H

#include "gen/verify/kernels/kernels.h"
#include "gen/verify/proof/lift.h"

/* What a program's text is read by. */
struct proof_source {
  const struct tree *tree;
  struct lift_directives *directives;
};

/* Whether all elements that the function writes have the terms of the formula that its runs found; found->variant -1:
 * of any variant of the formulas of its name, which *found has then. NULL: they have; or why that is not proved. */
const char *proof_of_kernel(struct arena *arena, const struct proof_source *source, const struct function *function,
                            const struct kernel *kernel, struct kernel_finding *found,
                            const struct known_numbers *known);

/* An array of floats of the program's arena: its first byte, and its bytes. False: the arena does not have one array of
 * that name. */
struct placed_array {
  int64_t first, size;
};
bool proof_arena_array(const struct tree *tree, const char *name, struct placed_array *found);

/* ---- For the formulas ---- */

struct proof {
  struct terms *terms;
  const struct kernel *kernel;
  int variant; /* of the formula */
  const struct chain *chain;
  const struct known_numbers *known;
  int64_t dims[8];
  int n_dims;
  int memories[MOST_ARRAYS]; /* of the arrays */
};

/* The term of element `e` of an array. */
typedef const struct term *proof_formula(struct proof *p, int array, const struct term *e);

struct proof_named_formula {
  const char *stem;
  proof_formula *formula;
  int variants; /* 0: one for each constant of the model */
};
extern const struct proof_named_formula proof_formulas[], proof_norm_formulas[], proof_loss_formulas[];

const struct term *proof_chain(struct proof *p, int array, const struct term *e);

/* Whether an array has that name. */
bool proof_is(const struct proof *p, int array, const char *name);

/* Element i of an array as it was before, and how many it has; 0 elements where there is none of that name. */
const struct term *proof_element(struct proof *p, const char *name, const struct term *i);
int64_t proof_count(const struct proof *p, const char *name);

/* e / by and e % by. */
const struct term *proof_row(struct proof *p, const struct term *e, int64_t by);
const struct term *proof_column(struct proof *p, const struct term *e, int64_t by);

/* Of two indices: row * width + column. */
const struct term *proof_index(struct proof *p, const struct term *row, int64_t width, const struct term *column);

#endif
