/* Keys: a resolved job as a list, for comparison with the job of a checkpoint. */
#ifndef ACCEL_SPEC_KEYS_H
#define ACCEL_SPEC_KEYS_H

#include "gen/spec/job.h"

struct job_key {
  const char *name;  /* "optimizer.lr" */
  const char *value; /* as YAML text; a list in flow form */
  const struct spec_node *node;
  bool may_change; /* from a run to the one that continues it: the schema's mayChange, of the key or of its group */
};

/* All keys in the schema's order. They live in `arena`. */
struct job_key *job_keys(struct arena *arena, const struct job *job, int *count);

#endif
