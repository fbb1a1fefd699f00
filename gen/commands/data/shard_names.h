/* Names of shards as WebDataset writes them: "train-{000000..000009}.tar" are ten files. A shell such as bash expands
 * them itself where they are not quoted; sh does not. */
#ifndef ACCEL_COMMANDS_DATA_SHARD_NAMES_H
#define ACCEL_COMMANDS_DATA_SHARD_NAMES_H

#include "gen/base/arena.h"
#include "runtime/base/problem.h"

struct shard_names {
  const char **items;
  int count, capacity;
};

/* Adds the names that `pattern` stands for: itself, where it has no {FIRST..LAST} of decimal numbers or is a file's.
 * All are the arena's. False with a problem: the last number is below the first, or there are more than a million
 * names. */
bool shard_names_add(struct shard_names *names, struct arena *arena, const char *pattern, struct problem *problem);

#endif
