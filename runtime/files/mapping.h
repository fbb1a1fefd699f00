/* A file read through memory. */
#ifndef RUNTIME_FILES_MAPPING_H
#define RUNTIME_FILES_MAPPING_H

#include "runtime/base/problem.h"

#include <stddef.h>
#include <stdint.h>

struct mapping {
  const uint8_t *bytes; /* NULL for an empty file */
  size_t size;
};

/* Maps the regular file at `path`. `cure` is the help of an error, such as the key that names the file. */
bool rt_map(struct mapping *mapping, const char *path, const char *cure, struct problem *problem);

/* The same of an open file; `path` is for messages. */
bool rt_map_file(struct mapping *mapping, int file, const char *path, const char *cure, struct problem *problem);

/* Opens the regular file at `path` for reading, with its size in *size; the caller closes it. -1 with a problem. */
int rt_open_regular(const char *path, size_t *size, const char *cure, struct problem *problem);

/* Maps bytes [first, first + size) of an open file, in whole pages: the first one of them is at *at, the memory is the
 * mapping's. False with errno. */
bool rt_map_part(struct mapping *mapping, int file, size_t first, size_t size, const uint8_t **at);

/* Tells the system that all of it will be read, so that the disk is ahead of who reads. */
void rt_map_ahead(const struct mapping *mapping);

void rt_unmap(struct mapping *mapping);

/* Lets go of the memory that holds what was read from `from` to `from + size`; reading it again maps it again. So a
 * file that is read through once does not count as this process's memory. */
void rt_map_forget(const uint8_t *from, size_t size);

/* From here on, reading a mapped file that was cut meanwhile ends the process with a message, not with SIGBUS. */
void rt_guard_mappings(void);

#endif
