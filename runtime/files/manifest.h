/* The manifest of a checkpoint: its step, its files and their sums. It is written last, so what it names is there. */
#ifndef RUNTIME_FILES_MANIFEST_H
#define RUNTIME_FILES_MANIFEST_H

#include "runtime/base/problem.h"
#include "runtime/files/files.h"

#include <stddef.h>
#include <stdint.h>

struct manifest_file {
  char name[256];
  struct file_sum sum;
};

struct manifest {
  int64_t step;
  struct manifest_file *files;
  int count, capacity;
};

/* Adds a file. False when there is no memory. */
bool rt_manifest_add(struct manifest *manifest, const char *name, struct file_sum sum, struct problem *problem);

/* The file of this name; NULL: none. */
const struct manifest_file *rt_manifest_find(const struct manifest *manifest, const char *name);

/* Writes it into `folder` as `name`: "manifest.json". */
bool rt_manifest_write(const struct manifest *manifest, const char *folder, const char *name, enum placing placing,
                       const char *generator, const char *job, struct problem *problem);

/* Reads the manifest in `bytes`; nothing in it is believed. Names are plain names of files. `path` is for messages. */
bool rt_manifest_read(struct manifest *manifest, const char *path, const char *bytes, size_t size,
                      struct problem *problem);

void rt_manifest_free(struct manifest *manifest);

#endif
