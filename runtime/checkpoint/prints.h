/* Fingerprints of a run's data, which its checkpoints keep: files that have changed since are named when it resumes. */
#ifndef RUNTIME_CHECKPOINT_PRINTS_H
#define RUNTIME_CHECKPOINT_PRINTS_H

#include "runtime/data/data.h"

struct json_t;

/* A list of the files, each with its path, its bytes and a sum over pieces of it, fewer the more files there are. NULL:
 * no memory. */
struct json_t *rt_prints_of(const struct data *data);

/* Adds to `changed` which of the files are others than those that the checkpoint `folder` was trained on: "corpus.txt:
 * other content". A checkpoint that has no such list says nothing. */
void rt_prints_compare(const char *folder, const struct data *data, char *changed, size_t size);

#endif
