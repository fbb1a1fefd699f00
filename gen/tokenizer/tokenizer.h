/* Tokenizers of Hugging Face's tokenizer.json, of one family: byte-pair encoding over bytes (GPT-2, Llama 3, Qwen).
 * What such a file can contain in addition is refused, not passed over. */
#ifndef ACCEL_TOKENIZER_TOKENIZER_H
#define ACCEL_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/tokenizer/split.h"
#include "runtime/base/problem.h"

struct tokenizer;

/* Reads a tokenizer from the text of a tokenizer.json; `path` is for messages. NULL with a problem. */
struct tokenizer *tokenizer_read(const char *path, const char *text, size_t size, struct problem *problem);

void tokenizer_free(struct tokenizer *tokenizer);

/* Every token is below this number. */
uint32_t tokenizer_vocabulary(const struct tokenizer *tokenizer);

/* The number of a token by its text, an added one or one of the vocabulary's. False: there is none. */
bool tokenizer_find(const struct tokenizer *tokenizer, const char *text, uint32_t *token);

/* A text on its way through a tokenizer. `at` and `inside` say how far it is: whoever begins with it again can resume
 * from there. */
struct encoding {
  struct tokenizer *tokenizer;
  const char *path; /* for messages */
  const char *text;
  size_t size;
  size_t at;     /* where the part at hand begins: what is between two added tokens */
  size_t inside; /* bytes of that part that are done, in its normal form */
  size_t end;    /* where it ends */
  bool has_part;
  char *part; /* its normal form, when that is not the text itself */
  struct splitting splitting;
  size_t stop; /* where the next added token that is found before normalization begins */
  bool knows_stop;
};

/* Begins with a text at its start. False with a problem at a byte that is not UTF-8. */
bool encoding_begin(struct encoding *encoding, struct tokenizer *tokenizer, const char *path, const char *text,
                    size_t size, struct problem *problem);

/* Goes to where another encoding of the same text was. */
void encoding_seek(struct encoding *encoding, size_t at, size_t inside);

/* The next tokens, at most a word's or an added one: an array that stays until the next call, *count of them; 0 at the
 * text's end. False with a problem. */
bool encoding_next(struct encoding *encoding, const uint32_t **tokens, size_t *count, struct problem *problem);

/* Whether `at` and `inside` are where it is: not so between the words of one piece of several splits. */
bool encoding_may_stop(const struct encoding *encoding);

void encoding_end(struct encoding *encoding);

#endif
