/* Trial: plans of a job and of variations of it, to see what they take. Each needs a graph of its own, which the caller
 * reads. */
#ifndef ACCEL_PLAN_TRIAL_H
#define ACCEL_PLAN_TRIAL_H

#include "gen/plan/plan.h"

struct planner {
  /* The model's graph for a job, in `arena`; NULL with errors in `diags`. */
  struct graph *(*read)(void *context, struct arena *arena, const struct job *job, struct diagnostics *diags);
  void *context;
  struct plan_request request; /* its `peeled` and `evaluated` are found for each job */
};

/* The job's program, with the first iterations of loops peeled off if that takes clearly less memory
 * (gen/plan/memory/alias.h). Otherwise as plan(). */
struct program *plan_least(struct arena *arena, const struct planner *planner, const struct job *job,
                           struct diagnostics *diags, const char *dump, const char **dumped);

/* What one setup of a job takes. */
struct trial {
  struct memory_bytes bytes;
  double flops;        /* of a step */
  const char *refusal; /* the first error, where it could not be planned and the caller keeps it */
  int64_t reserve; /* of a device map: the memory.reserve that leaves what the program takes in addition to modules */
  bool good;       /* it could be planned */
};

/* The memory.reserve of a job with a device map with which modules and what this program takes in addition to them fit
 * devices.memory, as far as that is the same with other modules; 0: the map leaves as much anyway, or there is none. */
int64_t reserve_of(const struct program *program);

/* Plans a job in an arena that is freed. `keep` gets the refusal; NULL: nobody asks for it. */
struct trial try_job(struct arena *keep, const struct planner *planner, const struct job *job);

/* Samples of a batch of a rank, as the job file says them: of a rank, or of all ranks. */
int64_t batch_in_file(const struct job *job, int64_t of_rank);

/* The samples of a step of one rank; 0: not given. */
int64_t step_of_rank(const struct job *job);

/* Whether the samples of a step divide among the ranks; else an error. */
bool step_divides(const struct job *job, struct diagnostics *diags);

#endif
