/* A batch of documents, which threads make tokens of at the same time. They stay in their order. */
#ifndef ACCEL_COMMANDS_DATA_BATCH_H
#define ACCEL_COMMANDS_DATA_BATCH_H

#include "gen/tokenizer/tokenizer.h"
#include "runtime/base/problem.h"

enum {
  BATCH_DOCUMENTS = 1024,
  BATCH_BYTES = 1 << 20,
  /* A longer document is not for a batch, where the others would wait for it. */
  BATCH_LONGEST = 1 << 18,
};

struct batch;

/* An empty batch, and an encoder for each thread of OpenMP. NULL without memory. */
struct batch *batch_new(const struct tokenizer *tokenizer);

void batch_free(struct batch *batch);

/* An encoder of the batch, to be used while batch_encode does not run. */
struct encoder *batch_encoder(struct batch *batch);

/* Adds a copy of a document to a batch; `path`, for messages, stays. One that is full or has a document of more than
 * BATCH_LONGEST bytes takes it, too, but threads wait then for whoever has the longest. Its tokens of `count` ranges
 * will be marked. False without memory. */
bool batch_add(struct batch *batch, const char *path, const char *text, size_t size, const struct text_range *ranges,
               size_t count);

bool batch_is_full(const struct batch *batch);

/* The number of documents. */
int batch_count(const struct batch *batch);

/* Makes the tokens of all documents. False with the problem of the first one that has one. */
bool batch_encode(struct batch *batch, struct problem *problem);

/* The tokens of document i, *count of them, until the batch is emptied. After batch_encode. */
const uint32_t *batch_tokens(const struct batch *batch, int i, size_t *count);

/* Which of them are marked. */
const uint8_t *batch_marks(const struct batch *batch, int i);

void batch_empty(struct batch *batch);

/* Leaves the first `count` documents in it. */
void batch_cut(struct batch *batch, int count);

#endif
