/* Length: how many steps a run has whose job says so in samples or epochs. */
#ifndef ACCEL_COMMANDS_GENERATE_LENGTH_H
#define ACCEL_COMMANDS_GENERATE_LENGTH_H

#include "gen/base/diag.h"
#include "gen/spec/job.h"

/* Sets job->training.steps where the job gives samples or epochs instead. What depends on the number of training
 * samples is counted in the job's data, which must be there then, as the trainer counts it; job->data.samples is that
 * number. False with an error when the data cannot be read or the schedule does not fit. */
bool find_steps(struct job *job, struct diagnostics *diags);

/* Token files that say which of their tokens are trained on. */
struct trained_tokens {
  int64_t tokens, trained;
};

/* Reads the job's training data, where they are there, and some file says so; else false. */
bool find_trained(struct job *job, struct trained_tokens *trained);

#endif
