/* Models: how the tokens of a word are found. Each kind is a file of its own. */
#ifndef ACCEL_TOKENIZER_MODEL_H
#define ACCEL_TOKENIZER_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct encoder;
struct reading;

#define TOKEN_NONE UINT32_MAX

/* The best way to a byte of a word (Unigram). */
struct best_path {
  double score;
  size_t from; /* where its last token begins; SIZE_MAX: there is no way yet */
  uint32_t token;
};

/* What models have; each its part. */
struct model_data {
  uint32_t unknown;       /* TOKEN_NONE: a text that is no token has none */
  uint32_t fallback[256]; /* the token of each byte of a text that is none; TOKEN_NONE: it has none */
  bool falls_back;        /* whether these are taken */
  bool fuses_unknown;     /* several unknown characters are one token */
  struct bpe *bpe;        /* BPE */
  uint32_t bytes[2][256]; /* … the token of a byte; at a word's end in [1] */
  const char *suffix;     /* … what the last character's text ends with; "" is none */
  bool ignores_merges;    /* … a word that is a token is that token */
  uint32_t continues;     /* WordPiece: the node of the prefix of all but the first token of a word */
  const char *prefix;     /* … that prefix */
  size_t most_characters; /* … a longer word is unknown */
  const double *scores;   /* Unigram: by token */
  double unknown_score;
};

enum word_result { WORD_ENCODED, WORD_NO_MEMORY, WORD_UNKNOWN };

struct model {
  const char *type; /* as tokenizer.json names it */
  /* Reads the file's model, and the vocabulary. False with a problem. */
  bool (*read)(const struct reading *reading, const json_t *model);
  /* The tokens of a word, valid UTF-8 and not empty, into encoder->tokens, *count of them. */
  enum word_result (*encode)(struct encoder *encoder, const char *word, size_t size, size_t *count);
};

extern const struct model model_bpe, model_unigram, model_word_level, model_word_piece;

void model_free(struct model_data *data);

/* Whether every text has tokens: there is one for what is unknown, or one for each byte. */
bool model_knows_all(const struct model_data *data);

#endif
