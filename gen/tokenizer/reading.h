/* Reading a tokenizer.json: what its parts share. A part that is not read is refused, not passed over. */
#ifndef ACCEL_TOKENIZER_READING_H
#define ACCEL_TOKENIZER_READING_H

#include "gen/tokenizer/parts.h"
#include "runtime/base/problem.h"

struct reading {
  struct tokenizer *tokenizer;
  const char *path; /* for messages */
  struct problem *problem;
};

/* Fills the problem: what is not read, under which key. Returns false. */
bool reading_refuse(const struct reading *reading, const char *key, const char *what);

/* Fills the problem with a lack of memory. Returns false. */
bool reading_no_memory(const struct reading *reading);

/* A member that is null, false, 0 or an empty text says nothing. */
bool json_is_nothing(const json_t *value);

/* Whether a value is that text. */
bool json_is_text(const json_t *value, const char *text);

/* The number of a token, from 0 on. False: it is none. */
bool json_token(const json_t *value, uint32_t *token);

/* The vocabulary, a map of texts to numbers. */
bool read_vocabulary(const struct reading *reading, const json_t *model);

/* The token that the model takes for what is none (unk_token), and those of bytes (byte_fallback). */
bool read_unknown(const struct reading *reading, const json_t *model);

/* The tokens of the bytes, <0x00> to <0xFF>, of those that there are. */
void read_fallback(const struct reading *reading, const json_t *model);

/* The steps before the model; what matches an expression of a Split or a Replace. */
bool read_normalizer(const struct reading *reading, const json_t *normalizer);
bool read_pre_tokenizer(const struct reading *reading, const json_t *pre_tokenizer);

/* Writes the expression of a pattern, {"Regex": …} or {"String": …}, whose text is quoted. False: it has none, or it is
 * too long. */
bool read_pattern(const json_t *pattern, char *expression, size_t size);

#endif
