/* Restore: a job from the keys that a program or a checkpoint states, which are those that differ from their defaults.
 */
#ifndef ACCEL_SPEC_RESTORE_H
#define ACCEL_SPEC_RESTORE_H

#include <jansson.h>

#include "gen/spec/keys.h"

/* Keys with their values. */
struct stated_keys {
  struct job_override *items; /* "optimizer.lr", "0.001" */
  int count, capacity;
  const char *digest;    /* of the resolved job; NULL: all keys are stated */
  const char *generator; /* whose defaults are left out: "accel-gen 0.1.0"; NULL: all keys are stated */
};

/* What the job.json of a checkpoint states; without keys where it is none. A digest of the model's C is left out. */
struct stated_keys stated_in_checkpoint(struct arena *arena, const json_t *recorded);

/* The job of which these are the keys, with its tree and its digest alone. NULL where the defaults of this version give
 * it another digest, or none. */
struct job *job_restore(struct arena *arena, const struct stated_keys *stated);

#endif
