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
  bool marked;           /* the file says which tokens are trained on; else all are */
  int64_t spans;         /* of consecutive tokens that are trained on */
  const uint8_t *ranges; /* two uint64 for each: its first token, and the one after its last */
  int64_t trained;       /* tokens in them */
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

/* Of targets that are tokens first … first + count - 1: `none` replaces those that are not trained on. */
void rt_tokens_leave_out(const struct tokens *tokens, int64_t first, int64_t count, int32_t none, int32_t *targets);

/* The length of the run of tokens from `first` on, at most `count`, that are all trained on, or, *trained being false
 * then, all not. */
int64_t rt_tokens_run(const struct tokens *tokens, int64_t first, int64_t count, bool *trained);

/* Copies tokens first … first + count - 1; returns the largest. */
int64_t rt_tokens_copy(const struct tokens *tokens, int64_t first, int64_t count, int32_t *out);

#endif
