/* What a tokenizer is made of. */
#ifndef ACCEL_TOKENIZER_PARTS_H
#define ACCEL_TOKENIZER_PARTS_H

#include <jansson.h>

#include "gen/tokenizer/bpe.h"
#include "gen/tokenizer/model.h"
#include "gen/tokenizer/normalize.h"
#include "gen/tokenizer/split.h"
#include "gen/tokenizer/trie.h"

/* A token in addition to the vocabulary, taken out of a text before anything else. */
struct added {
  const char *text; /* of the file's, or of `form` */
  size_t size;
  uint32_t token;
  bool normalized;                /* looked for in the normal form, as its own normal form */
  bool single_word;               /* only where no character of a word is next to it */
  bool strips_left, strips_right; /* white space on that side belongs to it */
  struct bytes form;
};

/* What is put before a text, or before the pieces of it, where they do not begin with it: a blank, or the mark of one.
 */
struct prefix {
  const char *text; /* NULL: nothing */
  size_t size;
  bool only_first;   /* before the beginning of a whole text alone, not after an added token */
  int level;         /* before the pieces that this split is within; 0: before the text */
  const char *blank; /* what blanks of the text become; NULL: they stay */
};

enum { CACHED_WORDS = 1 << 16, CACHED_BYTES = 24 };

struct cached {
  uint8_t size, count; /* size 0: nothing is there */
  char word[CACHED_BYTES];
  uint32_t tokens[CACHED_BYTES];
};

struct tokenizer {
  json_t *root; /* the file */
  struct trie *vocabulary;
  uint32_t tokens_end; /* every token is below it */
  uint32_t *sizes;     /* by token: the bytes of the text that it stands for; 0: not known. NULL: not measured */
  const struct model *model;
  struct model_data data; /* the model's */
  struct normalizers normalizers;
  struct splitter splitter;
  struct prefix prefix;
  bool maps_bytes; /* the characters of words are bytes, as ByteLevel spells them */
  struct added *added;
  size_t n_added;
  bool begins_added[256];      /* by first byte */
  void *word_end, *word_begin; /* pcre2_code: a character of a word at that end of a text */
};

struct encoder {
  const struct tokenizer *tokenizer;
  struct cached *cache;
  uint32_t *tokens; /* of the current word */
  size_t capacity;
  struct bpe_scratch bpe;
  struct best_path *paths; /* Unigram's */
  size_t n_paths;
  void *match; /* pcre2_match_data */
};

/* Reserves memory for `count` tokens of a word. False without memory. */
bool encoder_reserve(struct encoder *encoder, size_t count);

/* The character that encodes a byte (bytes_to_unicode of GPT-2's encoder.py): itself where it is printable, else the
 * next one from 256 on. */
uint32_t byte_character(int byte);

#endif
