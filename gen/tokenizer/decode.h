/* Decode: tokens back to text, one after another, as the decoders of the library tokenizers do it. */
#ifndef ACCEL_TOKENIZER_DECODE_H
#define ACCEL_TOKENIZER_DECODE_H

#include "gen/tokenizer/tokenizer.h"

struct decoder;

/* A decoder of a tokenizer, which must outlive it; `path` is for messages. NULL with a problem. */
struct decoder *decoder_new(const struct tokenizer *tokenizer, const char *path, struct problem *problem);

void decoder_free(struct decoder *decoder);

/* What the next token of a text adds to it, which stays until the next call. A character of several bytes may be
 * several tokens. NULL where there is no such token. */
const char *decoder_bytes(struct decoder *decoder, uint32_t token, size_t *size);

#endif
