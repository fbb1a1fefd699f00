/* Files that are whole or absent: written beside their place, synced, renamed. */
#ifndef RUNTIME_FILES_H
#define RUNTIME_FILES_H

#include "problem.h"

#include <stddef.h>

struct writer {
  char path[4096];    /* where the file will stand */
  char partial[4112]; /* where it is written until then: the same name with ".partial" */
  int file;
};

/* Begins to write `path`; a partial file that a killed run left is written over. */
bool rt_writer_open(struct writer *writer, const char *path, struct problem *problem);

/* Adds bytes. On failure the partial file is removed and the writer is closed. */
bool rt_writer_add(struct writer *writer, const void *bytes, size_t size, struct problem *problem);

/* Puts the file in its place: sync, rename, sync of the folder. After a failure what stood there is untouched. */
bool rt_writer_commit(struct writer *writer, struct problem *problem);

/* Makes a folder and the folders above it where they are missing. */
bool rt_make_folders(const char *path, struct problem *problem);

/* `folder`/`name` in `out`. */
bool rt_join(char *out, size_t size, const char *folder, const char *name, struct problem *problem);

#endif
