/* Numbers by name, each in a file of its own in one folder: what MLflow and DVCLive keep of a run. */
#ifndef RUNTIME_TRACKING_SERIES_H
#define RUNTIME_TRACKING_SERIES_H

#include "runtime/tracking/journal.h"

struct series_file {
  struct journal journal;
  struct bytes header; /* for a file that is not there yet */
  bool is_open;
};

struct series {
  char folder[4096];
  const char *ending; /* of the files' names */
  journal_cut *cut;
  struct series_file **files;
  int count;
};

/* Makes the folder. keep: the step that the run resumes from, after which nothing stays in any of its files; -1: files
 * with the ending are removed. */
bool rt_series_open(struct series *series, const char *folder, const char *ending, int64_t keep, journal_cut *cut,
                    struct problem *problem);

/* Adds an entry to the file of `name`, which begins with `header` where it is new, and frees it. */
void rt_series_add(struct series *series, const char *name, const char *header, struct bytes *entry);

bool rt_series_flush(struct series *series, struct problem *problem);
bool rt_series_close(struct series *series, struct problem *problem);

/* A name without what a file's name, or MLflow, cannot have: "/" becomes ".", and other marks "_". */
void rt_plain_name(char *plain, size_t size, const char *name);

/* Replaces a small file at once for whoever reads it, and does not wait for the disk. */
bool rt_replace_file(const char *path, struct bytes *content, struct problem *problem);

/* The same of the file `name` of a folder. Both free the content. */
bool rt_replace_in(const char *folder, const char *name, struct bytes *content, struct problem *problem);

#endif
