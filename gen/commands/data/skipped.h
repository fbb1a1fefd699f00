/* Skipped records: how many a command has passed over, and why the first. */
#ifndef ACCEL_COMMANDS_DATA_SKIPPED_H
#define ACCEL_COMMANDS_DATA_SKIPPED_H

#include "gen/tokenizer/documents.h"

struct skipped {
  int64_t count;
  struct problem first; /* empty: it was before this run, which resumes another */
};

/* Adds those of a file that was read. */
void skipped_add(struct skipped *skipped, const struct documents *documents);

/* Warns of them on standard error, where there are any. */
void skipped_report(const struct skipped *skipped);

#endif
