/* Keys: a resolved job as a list, for comparison with the job of a checkpoint. */
#ifndef ACCEL_SPEC_KEYS_H
#define ACCEL_SPEC_KEYS_H

#include "gen/spec/job.h"

/* How the digest of a model is named among the keys. */
#define MODEL_KEY "the model's C"

struct job_key {
  const char *name;  /* "optimizer.lr" */
  const char *value; /* as YAML text; a list in flow form */
  const struct spec_node *node;
  bool at_default; /* by the key's own default, and by none that depends on other keys: programs leave it out */
  bool may_change; /* from a run to the one that continues it: the schema's mayChange, of the key or of its group */
};

/* All keys in the schema's order. They live in `arena`. */
struct job_key *job_keys(struct arena *arena, const struct job *job, int *count);

#endif
