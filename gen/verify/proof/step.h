/* Proofs of the functions that a step has of numbers alone. */
#ifndef ACCEL_VERIFY_PROOF_STEP_H
#define ACCEL_VERIFY_PROOF_STEP_H

#include "gen/spec/job.h"
#include "gen/verify/proof/proof.h"

/* A function of a step: its name in programs, and what it is. */
struct step_function {
  const char *name, *what;
};

/* learning_rate(at), the rate of docs/job.md; gradient_norm(unscale); clip_factor(norm); smoothing_factor(at), what
 * goes into the averages of the weights. The last one has no name. */
extern const struct step_function step_functions[];

/* Whether the function of that number returns the published formula for all values of its parameters, of a step from 0
 * on. NULL: it does; or why that is not proved. */
const char *proof_of_step_function(struct arena *arena, const struct proof_source *source, const struct job *job,
                                   int number);

#endif
