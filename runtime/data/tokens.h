/* Token files: what stands in their bytes. Knows nothing of files, so that it can be fuzzed. */
#ifndef RUNTIME_DATA_TOKENS_H
#define RUNTIME_DATA_TOKENS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

#include <stddef.h>
#include <stdint.h>

struct tokens {
  const uint8_t *bytes; /* where the first token stands */
  int64_t count;
  int width;             /* bytes of a token: 1, 2 or 4, little endian */
  int64_t bytes_before;  /* of the file, for the offsets of messages */
  uint64_t vocabulary;   /* every token is below it, as the file says; 0: it says nothing */
  int64_t documents;     /* 0: the file says nothing of them */
  const uint8_t *starts; /* the first token of each, uint64 */
};

/* Finds the tokens in the `size` bytes of a file of one of the token formats; `path` is for messages. */
bool rt_tokens_find(struct tokens *tokens, enum accel_format format, const char *path, const uint8_t *bytes,
                    size_t size, struct problem *problem);

/* Whether tokens first … first + count - 1 are below `vocabulary`. */
bool rt_tokens_check(const struct tokens *tokens, int64_t first, int64_t count, const char *path, int64_t vocabulary,
                     struct problem *problem);

/* Whether the format allows no token outside of `vocabulary` (0: any will do), so that none has to be looked at. */
bool rt_tokens_need_no_check(const struct tokens *tokens, int64_t vocabulary);

/* The document that `token` is in, by its number. There are documents. */
int64_t rt_tokens_document(const struct tokens *tokens, int64_t token);

/* The first token of a document by its number; of the one after the last, the number of tokens. */
int64_t rt_tokens_start(const struct tokens *tokens, int64_t document);

/* Copies tokens first … first + count - 1; returns the largest. */
int64_t rt_tokens_copy(const struct tokens *tokens, int64_t first, int64_t count, int32_t *out);

#endif
