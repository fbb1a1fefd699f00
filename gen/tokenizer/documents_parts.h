/* What the parts of documents.h share. */
#ifndef ACCEL_TOKENIZER_DOCUMENTS_PARTS_H
#define ACCEL_TOKENIZER_DOCUMENTS_PARTS_H

#include "gen/tokenizer/documents.h"

/* A problem in the current record: in its line `line`, at `column`, from 1; 0: of the line, or of the sample, as a
 * whole. Returns false. */
bool documents_bad(const struct documents *of, int64_t line, int64_t column, const char *what, const char *remedy,
                   struct problem *problem);

/* Takes the text of a record of JSON of `size` bytes, which stay until the next one. False with a problem. */
bool documents_take_record(struct documents *of, const char *record, size_t size, struct problem *problem);

/* Begins with the samples of a shard; of->shard is to be freed also after false. */
bool documents_begin_samples(struct documents *of, const char *bytes, size_t size, struct problem *problem);

/* The text of the next sample. */
enum document documents_next_sample(struct documents *of, struct problem *problem);

#endif
