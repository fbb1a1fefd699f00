/* Program words: what an emitted program says of its job and its plan, read from its text alone. */
#ifndef ACCEL_PROVENANCE_PROGRAM_WORDS_H
#define ACCEL_PROVENANCE_PROGRAM_WORDS_H

#include "gen/provenance/compare.h"

/* The job's keys, from the table that a run compares with a checkpoint's; none where the program has no such table.
 * *model is the digest of the model among them, NULL where there is none. */
struct pairs keys_in_program(struct arena *arena, const char *text, const char **model);

/* The plan's figures, from the first comment. */
struct pairs summary_in_program(struct arena *arena, const char *text);

#endif
