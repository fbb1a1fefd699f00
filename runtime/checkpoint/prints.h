/* Fingerprints of a run's files, which its checkpoints keep: data that has changed since is named when it resumes, and
 * weights from which layers stream must be as they were, since checkpoints do not have these. */
#ifndef RUNTIME_CHECKPOINT_PRINTS_H
#define RUNTIME_CHECKPOINT_PRINTS_H

#include "runtime/data/data.h"
#include "runtime/weights/weights.h"

struct json_t;

/* A list of the files, each with its path, its bytes and a sum over pieces of it, fewer the more files there are. NULL:
 * no memory. */
struct json_t *rt_prints_of(const struct data *data);

/* Adds to `changed` which of the files are others than those that the checkpoint `folder` was trained on: "corpus.txt:
 * other content". A checkpoint that has no such list says nothing. */
void rt_prints_compare(const char *folder, const struct data *data, char *changed, size_t size);

/* A list of the files of open weights, each with its path, its bytes and a sum over pieces of it, in *list, the
 * caller's also after an error. False with a problem where one cannot be read. */
bool rt_prints_of_weights(const struct weights_file *file, struct json_t **list, struct problem *problem);

/* Whether the weights of `list` are those with which the run of the checkpoint `folder` began. False with a problem
 * that names the first file that is another one. True of a checkpoint that has no such list. */
bool rt_prints_check_weights(const char *folder, const struct json_t *list, struct problem *problem);

#endif
