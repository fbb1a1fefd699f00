/* The proof of a program's update of the weights. */
#ifndef ACCEL_VERIFY_PROOF_UPDATE_H
#define ACCEL_VERIFY_PROOF_UPDATE_H

#include "gen/spec/job.h"
#include "gen/verify/proof/proof.h"

/* Whether update(at, lr) or update(at, lr, factor), where `factor` is what the gradient is multiplied by, makes of each
 * element of the arena's all_weights and of the optimizer's states what the published formula of the job's optimizer
 * makes of the element and of the same one of all_gradients, and writes nothing else. NULL: it does; or why that is not
 * proved. That these arrays are the model's parameters and the states of their names is not looked at: a run shows
 * that. */
const char *proof_of_update(struct arena *arena, const struct proof_source *source, const struct job *job);

#endif
