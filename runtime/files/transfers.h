/* Reads and writes of a file that happen while the process computes: by io_uring where liburing was there when this was
 * compiled and the system allows it, else by threads. */
#ifndef RUNTIME_FILES_TRANSFERS_H
#define RUNTIME_FILES_TRANSFERS_H

#include "runtime/base/problem.h"

#include <stddef.h>

enum transfer_way { TRANSFERS_AS_IS_BEST, TRANSFERS_BY_URING, TRANSFERS_BY_THREADS };

/* Files as they are read and written: `file`, and the same one opened for transfers of whole pages past the system's
 * cache (O_DIRECT), -1 where it cannot be. `path` names it in messages. */
struct transfer_files {
  int file, direct;
  const char *path;
};

struct transfers;

/* Begins; the files stay the caller's, and open until rt_transfers_close. NULL with a problem where neither a ring nor
 * a thread can be made, or not the one that is asked for. */
struct transfers *rt_transfers_open(struct transfer_files files, enum transfer_way way, struct problem *problem);

/* Begins to read bytes of the file from `first` on into memory[bytes], or to write them. Of two that share memory or
 * bytes of the file, the second one begins when the first has ended. After a failure nothing begins any more. */
void rt_transfers_read(struct transfers *transfers, size_t first, void *memory, size_t bytes);
void rt_transfers_write(struct transfers *transfers, size_t first, const void *memory, size_t bytes);

/* Waits until no transfer uses memory[bytes]; NULL: until all have ended. False with the problem of one that failed. */
bool rt_transfers_wait(struct transfers *transfers, const void *memory, size_t bytes, struct problem *problem);

/* Waits for all, and ends. NULL is allowed. */
void rt_transfers_close(struct transfers *transfers);

#endif
