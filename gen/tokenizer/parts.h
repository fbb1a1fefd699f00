/* What a tokenizer is made of. */
#ifndef ACCEL_TOKENIZER_PARTS_H
#define ACCEL_TOKENIZER_PARTS_H

#include <jansson.h>

#include "gen/tokenizer/bpe.h"
#include "gen/tokenizer/split.h"

/* A token in addition to the vocabulary, taken out of a text before anything else. */
struct added {
  const char *text; /* of the file's */
  size_t size;
  uint32_t token;
  bool normalized; /* looked for in the normal form */
};

enum { CACHED_WORDS = 1 << 16, CACHED_BYTES = 24 };

struct cached {
  uint8_t size, count; /* size 0: nothing is there */
  char word[CACHED_BYTES];
  uint32_t tokens[CACHED_BYTES];
};

struct tokenizer {
  json_t *root;             /* the file */
  const json_t *vocabulary; /* of it: text to number */
  uint32_t byte_tokens[256];
  uint32_t tokens_end; /* every token is below it */
  struct bpe *bpe;
  struct splitter splitter;
  bool composes;       /* texts are brought to Unicode's normal form C */
  bool adds_space;     /* before each part of a text that has none */
  bool ignores_merges; /* a word that is a token is that token */
  struct added *added;
  size_t n_added;
  bool begins_added[256]; /* by first byte */
  struct cached *cache;
  uint32_t *tokens; /* of the word at hand */
  size_t capacity;
};

/* The character that stands for a byte (bytes_to_unicode of GPT-2's encoder.py): itself where it is printable, else the
 * next one from 256 on. */
uint32_t byte_character(int byte);

/* The token that a whole word is; false where it is none. */
bool tokenizer_word(const struct tokenizer *tokenizer, const char *word, size_t size, uint32_t *token);

#endif
