/* Fit: the largest batch, or the longest sequence, of a job whose plan takes no more than a number of bytes. It is
 * found by planning: a program takes a bit more with each sample and each token, but what exactly is known of a plan
 * alone. */
#ifndef ACCEL_PLAN_FIT_H
#define ACCEL_PLAN_FIT_H

#include "gen/plan/trial.h"

enum fit_size { FIT_BATCH, FIT_SEQUENCE };

struct fit {
  int64_t size;              /* samples of a rank's micro-batch, or tokens; 0: not even `next` fits, the smallest */
  struct memory_bytes bytes; /* of the plan with it */
  int64_t next;              /* the size after it; 0: there is none */
  int64_t next_bytes;        /* of the plan with that; 0: it has none */
  const char *refusal;       /* why there is no next size, or no plan with it; NULL: there is */
};

/* The largest size that fits `memory` bytes, while the next one does not; all else as the job says. The sizes are those
 * that the job can take: micro-batches that divide accumulation.train_batch_size where that is given; sequences that
 * divide among its ranks, and no longer than the positions of published weights. A job over rows has no sequences. The
 * job has no open numbers (is_open) and no mesh that is searched. */
struct fit fit_largest(struct arena *arena, const struct planner *planner, const struct job *job, enum fit_size what,
                       int64_t memory);

/* What the command line sets for it, in `arena`: at most 2, their number in *count. */
struct job_override *fit_keys(struct arena *arena, const struct job *job, enum fit_size what, int64_t size, int *count);

#endif
