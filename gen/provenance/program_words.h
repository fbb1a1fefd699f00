/* Program words: what an emitted program says of its job and its plan, read from its text alone. */
#ifndef ACCEL_PROVENANCE_PROGRAM_WORDS_H
#define ACCEL_PROVENANCE_PROGRAM_WORDS_H

#include "gen/provenance/compare.h"

/* The job, from what a run compares with a checkpoint's; nothing where the program has no such table. */
struct program_job {
  struct pairs keys;     /* those that differ from the defaults of the generator */
  const char *model;     /* the digest of the model's C */
  const char *digest;    /* of all keys */
  const char *generator; /* "accel-gen 0.1.0" */
};
struct program_job job_in_program(struct arena *arena, const char *text);

/* The plan's figures, from the first comment. */
struct pairs summary_in_program(struct arena *arena, const char *text);

#endif
