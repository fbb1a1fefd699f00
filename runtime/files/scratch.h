/* A file without a name: what a process has on a disk while it runs. No other process can open it, and the system frees
 * it when this one ends, however it ends. */
#ifndef RUNTIME_FILES_SCRATCH_H
#define RUNTIME_FILES_SCRATCH_H

#include "runtime/base/problem.h"

#include <stddef.h>

struct scratch {
  int file, direct; /* direct: opened with O_DIRECT; -1 where the file system has no such files */
  char *bytes;      /* the whole file, mapped: pages that are touched stay in memory while the system has space */
  size_t size;
};

/* Makes one of `size` zeros in `folder`, which is made where it is missing, with its space reserved. False with a
 * problem: no folder, no permission, no space. */
bool rt_scratch_open(struct scratch *scratch, const char *folder, size_t size, struct problem *problem);

/* Copies what the file has for bytes[size] of its mapping to `to`, or from `from`, and touches no page. False with
 * errno. */
bool rt_scratch_read(const struct scratch *scratch, const char *bytes, void *to, size_t size);
bool rt_scratch_write(const struct scratch *scratch, const char *bytes, const void *from, size_t size);

void rt_scratch_close(struct scratch *scratch);

#endif
