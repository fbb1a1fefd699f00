/* Shared file: whether all ranks see the same files, so that each can read its part of them. */
#ifndef RUNTIME_WEIGHTS_SHARED_FILE_H
#define RUNTIME_WEIGHTS_SHARED_FILE_H

#include "runtime/weights/weights.h"

/* Whether all ranks opened `file` (NULL: this one could not), and it is the same for all: files of equal inode, length
 * and time of change, as on a file system that all machines share. False for the parts of ranks (parts.h), which are
 * read as a whole. All ranks call it. */
bool rt_weights_are_shared(const struct weights_file *file);

#endif
