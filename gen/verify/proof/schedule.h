/* The learning rate as a term. */
#ifndef ACCEL_VERIFY_PROOF_SCHEDULE_H
#define ACCEL_VERIFY_PROOF_SCHEDULE_H

#include "gen/spec/job.h"
#include "gen/verify/proof/term.h"

/* The rate of `step`, counted from 0, as docs/job.md writes it; where there is no term of it, terms_failure(). */
const struct term *rate_term(struct terms *terms, const struct job *job, const struct term *step);

#endif
