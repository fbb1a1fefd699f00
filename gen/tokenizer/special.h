/* Special tokens: what the post-processor of a tokenizer.json puts around one text and around two, as
 * Tokenizer.encode(text, pair) does. */
#ifndef ACCEL_TOKENIZER_SPECIAL_H
#define ACCEL_TOKENIZER_SPECIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/problem.h"

struct tokenizer;

enum { SPECIAL_MOST = 32 };

/* A token, or all tokens of a text, and the segment (token_type_ids) that they are in. */
struct special_piece {
  int text; /* 0 or 1: the text; -1: the token */
  uint32_t token;
  uint8_t segment;
};

struct special_pieces {
  struct special_piece items[SPECIAL_MOST];
  int count, tokens; /* tokens: those of the pieces that are tokens */
};

/* By the number of texts less 1. */
struct special {
  struct special_pieces of[2];
  bool trims; /* offsets leave out the blanks around a token (trim_offsets) */
};

/* Reads the post-processor of a tokenizer: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, a Sequence
 * of these with at most one of the first three, or none, which puts nothing around texts. `path` is for messages. False
 * with a problem at any other. */
bool tokenizer_special(const struct tokenizer *tokenizer, const char *path, struct special *special,
                       struct problem *problem);

/* The number of the padding token that the tokenizer.json itself names ("padding"). False: it names none. */
bool tokenizer_padding(const struct tokenizer *tokenizer, uint32_t *token);

#endif
