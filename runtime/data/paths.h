/* The files that a path of a job stands for. */
#ifndef RUNTIME_DATA_PATHS_H
#define RUNTIME_DATA_PATHS_H

#include "runtime/base/problem.h"

#include <stdbool.h>
#include <stddef.h>

struct paths {
  char **items; /* each one's own memory */
  size_t count, capacity;
};

/* Adds the file at `path`; where there is none of that very name, those that match it as a pattern of glob(7), in the
 * order of their bytes. A path that is no pattern is added unseen. */
bool rt_paths_add(struct paths *paths, const char *path, const char *cure, struct problem *problem);

void rt_paths_free(struct paths *paths);

#endif
