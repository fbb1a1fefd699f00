/* Sources: the files that a program's parameters start from, and the tensors there by the names that the model knows
 * them by, after the job's rules (struct accel_rename). */
#ifndef RUNTIME_WEIGHTS_SOURCES_H
#define RUNTIME_WEIGHTS_SOURCES_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/weights/shards.h"

struct named_tensor {
  const char *name; /* by which the model knows it; the tensor's own where no rule has renamed it */
  const struct stored_tensor *tensor;
  const char *path; /* of its source */
  int source;       /* its index; 0: the one that the program starts from, others are those of rules */
};

struct sources {
  bool unmapped; /* their files are (rt_shards_open_unmapped) */
  struct shards *items;
  const char **paths; /* as the job and its rules name them */
  int count;
  struct named_tensor *tensors; /* by name */
  int n_tensors;
};

/* Opens `path`, and the files that the rules of `start` name, and renames their tensors. A rule's file is a source of
 * its own, also where it is `path` again. False where one cannot
 * be opened, a rule matches nothing, or two tensors get one name. `start` outlives the sources. `unmapped`: as
 * rt_shards_open_unmapped opens them. */
bool rt_sources_open(struct sources *sources, const struct accel_start_file *start, const char *path, bool unmapped,
                     struct problem *problem);

/* The same of files that are open, without rules; rt_sources_close leaves them open. */
bool rt_sources_of(struct sources *sources, const struct shards *shards, const char *path, struct problem *problem);

/* NULL: there is none of this name. */
const struct named_tensor *rt_sources_find(const struct sources *sources, const char *name);

/* Lets go of the memory that holds what was read of a tensor of files that the sources opened; of other files nothing.
 */
void rt_sources_forget(const struct sources *sources, const struct named_tensor *tensor);

void rt_sources_close(struct sources *sources);

#endif
