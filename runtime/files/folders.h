/* Folders of files: removed, replaced, and found by number. One that is being written or removed is called
 * NAME.partial, so that every other one is whole. */
#ifndef RUNTIME_FILES_FOLDERS_H
#define RUNTIME_FILES_FOLDERS_H

#include "runtime/base/problem.h"

#include <stddef.h>
#include <stdint.h>

/* "NAME.partial" */
bool rt_partial_name(char *out, size_t size, const char *folder, struct problem *problem);

/* Removes a folder and all that it holds; one that is not there is removed already. No link is followed: of a link of
 * this name, or in the folder, the link alone is removed. What is mounted in it stays, and that is an error. */
bool rt_folder_remove(const char *folder, struct problem *problem);

/* Makes a folder and the folders above it where they are missing. A link of its own name is removed, so that what is
 * written there does not reach what was linked. */
bool rt_folder_make_own(const char *folder, struct problem *problem);

/* Renames the folder `from` to `to`, durably. What was there is removed as above. */
bool rt_folder_replace(const char *from, const char *to, struct problem *problem);

/* The numbers of the folders PREFIXn in `folder`, in rising order. */
struct numbers {
  int64_t *items;
  int count;
};

/* None when there is no such folder. */
bool rt_numbers_find(struct numbers *numbers, const char *folder, const char *prefix, struct problem *problem);

void rt_numbers_free(struct numbers *numbers);

/* Removes what killed processes left of such folders: PREFIXn.partial. */
bool rt_folders_sweep(const char *folder, const char *prefix, struct problem *problem);

/* Removes the lowest numbers of PREFIXn until `limit` are left; of a link to a folder the link alone. */
bool rt_folders_limit(const char *folder, const char *prefix, int64_t limit, struct problem *problem);

#endif
