/* Decode: tokens back to text. */
#ifndef ACCEL_TOKENIZER_DECODE_H
#define ACCEL_TOKENIZER_DECODE_H

#include "gen/tokenizer/tokenizer.h"

struct decoder;

/* A decoder of a tokenizer, which must outlive it. NULL without memory. */
struct decoder *decoder_new(const struct tokenizer *tokenizer);

void decoder_free(struct decoder *decoder);

/* The bytes that a token stands for, which stay until the next call: of an added one its text, of any other the byte
 * for each of its characters. A character of several bytes may be several tokens. NULL where there is no such token. */
const char *decoder_bytes(struct decoder *decoder, uint32_t token, size_t *size);

#endif
