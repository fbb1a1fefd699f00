/* Reads and writes of files that happen while the process computes: by io_uring where liburing was there when this was
 * compiled and the system allows it, else by threads. */
#ifndef RUNTIME_FILES_TRANSFERS_H
#define RUNTIME_FILES_TRANSFERS_H

#include "runtime/base/problem.h"

#include <stddef.h>

enum transfer_way { TRANSFERS_AS_IS_BEST, TRANSFERS_BY_URING, TRANSFERS_BY_THREADS };

/* A file as it is read and written: `file`, and the same one opened for transfers of whole pages past the system's
 * cache (O_DIRECT), -1 where it cannot be, or where its file system refuses one. `path` names it in messages, whose
 * help is `cure`. */
struct transfer_file {
  int file, direct;
  const char *path, *cure;
};

struct transfers;

/* Begins. NULL with a problem where neither a ring nor a thread can be made, or not the one that is asked for. */
struct transfers *rt_transfers_open(enum transfer_way way, struct problem *problem);

/* Begins to read bytes of a file from `first` on into memory[bytes], or to write them. The file stays the caller's, and
 * open, until the transfer has ended. Of two that share memory, or of which one writes what the other has of a file,
 * the second one begins when the first has ended. After a failure nothing begins any more. */
void rt_transfers_read(struct transfers *transfers, struct transfer_file *file, size_t first, void *memory,
                       size_t bytes);
void rt_transfers_write(struct transfers *transfers, struct transfer_file *file, size_t first, const void *memory,
                        size_t bytes);

/* Waits until no transfer uses memory[bytes]; NULL: until all have ended. False with the problem of one that failed. */
bool rt_transfers_wait(struct transfers *transfers, const void *memory, size_t bytes, struct problem *problem);

/* Waits for all, and ends. NULL is allowed. */
void rt_transfers_close(struct transfers *transfers);

#endif
