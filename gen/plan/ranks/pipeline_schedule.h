/* The order of a pipeline's stages, by parallelism.pp_schedule: gen/program/pipeline_schedule.h says how it is stated.
 *
 * - gpipe: all forwards, then all backwards (Huang et al., arXiv:1811.06965).
 * - 1f1b: a rank goes forward until the first micro-batch comes back, then back and forward in turn (Narayanan et al.,
 *   "PipeDream", arXiv:1806.03377; with a flush after each step, arXiv:2104.04473, section 2.2.1).
 * - interleaved: the same over several chunks of the model on each rank (arXiv:2104.04473, section 2.2.2, and
 *   Megatron-LM's forward_backward_pipelining_with_interleaving).
 * - zero_bubble: 1f1b whose gradients of weights come later, ZB-H1 (Qi et al., arXiv:2401.10241, section 2.3). */
#ifndef ACCEL_PLAN_RANKS_PIPELINE_SCHEDULE_H
#define ACCEL_PLAN_RANKS_PIPELINE_SCHEDULE_H

#include "gen/base/arena.h"
#include "gen/program/program.h"

/* That of so many ranks, with as many stages each. */
struct schedule schedule_of(struct arena *arena, enum pp_schedule kind, int64_t ranks, int64_t chunks,
                            int64_t micro_batches);

/* Of how many micro-batches each stage has been forward and not back, or has gradients deferred, at most at a time:
 * what it stores at once. By stage. */
int64_t *schedule_slots(struct arena *arena, const struct schedule *schedule);

#endif
