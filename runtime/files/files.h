/* Files that are whole or absent: written next to where they go, synced, renamed. */
#ifndef RUNTIME_FILES_FILES_H
#define RUNTIME_FILES_FILES_H

#include "runtime/base/problem.h"
#include "runtime/base/progress.h"
#include "runtime/files/prefix_checksums.h"
#include "runtime/files/stream.h"

#include <stddef.h>

/* What is known of a written file. */
struct file_sum {
  uint64_t size, xxh64;
  struct marks marks;
};

/* Where a file is written until it is whole: under another name, or under its own, when its folder is not at its path
 * yet. */
enum placing { BY_RENAME, IN_PLACE };

struct writer {
  char path[4096];    /* where the file will stand */
  char partial[4112]; /* where it is written until then: BY_RENAME, the same name with ".partial" */
  int file;
  struct stream *stream;             /* through which it is written; NULL: none */
  struct prefix_checksums checksums; /* of what was added */
  struct progress *progress;         /* shows what is added; NULL: nothing does */
};

/* Begins to write `path`; a partial file that a killed run left is removed before, of a link of its name the link
 * alone. BY_RENAME, a folder, a device or a pipe that has the name is refused, since it would be replaced. */
bool rt_writer_open(struct writer *writer, const char *path, enum placing placing, struct problem *problem);

/* Goes on with a partial file next to `path` of which the first `size` bytes are good; the rest is cut off. What was
 * added before is not in the sum. */
bool rt_writer_resume(struct writer *writer, const char *path, size_t size, struct problem *problem);

/* Leaves nothing of an unfinished file; the problem is `what`, with errno. False, as what fails otherwise. */
bool rt_writer_give_up(struct writer *writer, const char *what, struct problem *problem);

/* From here on, what is added goes through a stream (stream.h), as is worth it for a large file. */
void rt_writer_stream(struct writer *writer);

/* Adds bytes. On failure the partial file is removed and the writer is closed. */
bool rt_writer_add(struct writer *writer, const void *bytes, size_t size, struct problem *problem);

/* Moves the file to its final path: sync, rename, sync of the folder; IN_PLACE, sync alone. After a failure what was
 * there is untouched. */
bool rt_writer_commit(struct writer *writer, struct problem *problem);

/* What was added so far. */
struct file_sum rt_writer_sum(const struct writer *writer);

/* Writes a whole file; its size and sum in *sum unless that is NULL. */
bool rt_write_file(const char *path, enum placing placing, const void *bytes, size_t size, struct file_sum *sum,
                   struct problem *problem);

/* Makes what happened to the names in a folder durable. */
bool rt_sync_folder(const char *path, struct problem *problem);

/* Makes a folder and the folders above it where they are missing. */
bool rt_make_folders(const char *path, struct problem *problem);

/* Whether both names are of one file that is there, by whatever links. */
bool rt_is_same_file(const char *a, const char *b);

/* `folder`/`name` in `out`. */
bool rt_join(char *out, size_t size, const char *folder, const char *name, struct problem *problem);

#endif
