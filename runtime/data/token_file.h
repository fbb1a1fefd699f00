/* The project's own token file: a header of 64 bytes, little endian, then the tokens, then where documents begin.
 *
 *    0  "ACCELTOK"
 *    8  uint32   version: 1, or 2 where the file says which tokens are trained on
 *   12  uint32   bytes of a token: 1, 2 or 4
 *   16  uint64   tokens
 *   24  uint64   vocabulary: every token is below it
 *   32  uint64   XXH64 of all that follows the header, and then of the header, this field being 0
 *   40  uint64   documents; their first tokens' numbers, uint64 each and rising from 0, follow the tokens at the next
 *                multiple of 8. 0: not known
 *   48  uint64   of version 2: spans of consecutive tokens that are trained on; the number of the first token of each
 *                and of the one after its last, uint64 each and rising, are the end of the file. Of version 1: 0
 *   56  uint64   of version 2: tokens that are trained on. Of version 1: 0 */
#ifndef RUNTIME_DATA_TOKEN_FILE_H
#define RUNTIME_DATA_TOKEN_FILE_H

#include "runtime/base/problem.h"
#include "runtime/data/tokens.h"
#include "runtime/files/files.h"

/* Finds the tokens in the `size` bytes of such a file. The sum is not looked at. */
bool rt_token_file_find(struct tokens *tokens, const char *path, const uint8_t *bytes, size_t size,
                        struct problem *problem);

/* Compares the file with its sum; `forget` is called after each chunk that was read, unless it is NULL. */
bool rt_token_file_verify(const char *path, const uint8_t *bytes, size_t size,
                          void (*forget)(const uint8_t *from, size_t size), struct problem *problem);

/* A file on its way. */
struct token_writer {
  struct writer writer;
  int width;
  uint64_t tokens, highest;
  uint64_t *documents;
  int64_t n_documents, capacity;
  bool marks;      /* which tokens are trained on */
  uint64_t *spans; /* of them: the first token of each and the one after its last */
  int64_t n_spans, span_capacity;
};

/* Begins a file of tokens of `width` bytes. */
bool rt_token_writer_open(struct token_writer *out, const char *path, int width, struct problem *problem);

/* Goes on with a file that was not finished: out->width, ->tokens, ->highest and ->documents are as they were. */
bool rt_token_writer_resume(struct token_writer *out, const char *path, struct problem *problem);

/* The next token begins a document. */
bool rt_token_writer_document(struct token_writer *out, struct problem *problem);

/* The file will say which tokens are trained on: those that rt_token_writer_train names. */
void rt_token_writer_mark(struct token_writer *out);

/* The last `count` tokens are trained on, which no call before this one has named. False without memory. */
bool rt_token_writer_train(struct token_writer *out, uint64_t count, struct problem *problem);

/* How many are. */
uint64_t rt_token_writer_trained(const struct token_writer *out);

/* Adds tokens, which must fit the width. */
bool rt_token_writer_add(struct token_writer *out, const uint32_t *tokens, size_t count, struct problem *problem);

/* Adds tokens of a byte each, to a file of width 1. */
bool rt_token_writer_add_bytes(struct token_writer *out, const uint8_t *tokens, size_t count, struct problem *problem);

/* Writes what follows the tokens and the header, and moves the file to its final path. `vocabulary` 0: one more than
 * the largest token. */
bool rt_token_writer_commit(struct token_writer *out, uint64_t vocabulary, struct problem *problem);

#endif
