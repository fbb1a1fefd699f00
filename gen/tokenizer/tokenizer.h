/* Tokenizers of Hugging Face's tokenizer.json: BPE, over bytes (GPT-2, Llama 3, Qwen) or characters (Llama 2, Gemma,
 * CLIP), WordPiece (BERT) and Unigram (T5, XLM-R, ALBERT). What of such a file is not read is refused, not passed over.
 */
#ifndef ACCEL_TOKENIZER_TOKENIZER_H
#define ACCEL_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/tokenizer/bytes.h"
#include "gen/tokenizer/marks.h"
#include "gen/tokenizer/split.h"
#include "runtime/base/problem.h"

struct added;
struct tokenizer;
struct encoder;

/* Reads a tokenizer from the text of a tokenizer.json; `path` is for messages. NULL with a problem. */
struct tokenizer *tokenizer_read(const char *path, const char *text, size_t size, struct problem *problem);

void tokenizer_free(struct tokenizer *tokenizer);

/* Every token is below this number. */
uint32_t tokenizer_vocabulary(const struct tokenizer *tokenizer);

/* The number of a token by its text, an added one or one of the vocabulary's. False: there is none. */
bool tokenizer_find(const struct tokenizer *tokenizer, const char *text, uint32_t *token);

/* What one thread needs to encode texts, one after another, by a tokenizer, which must outlive it. NULL without memory.
 */
struct encoder *encoder_new(const struct tokenizer *tokenizer);

void encoder_free(struct encoder *encoder);

/* An added token in a text, and where it is, with the white space that belongs to it. */
struct added_match {
  const struct added *added; /* NULL: there is none, and it is at the text's end */
  size_t from, to;
};

/* A text on its way through a tokenizer: parts between added tokens, whose normal forms are cut at the added tokens
 * that are looked for there, and what is between those into words. `at` and `inside` say how far it is: whoever begins
 * with it again can resume from there. */
struct encoding {
  struct encoder *encoder;
  const char *path; /* for messages */
  const char *text;
  size_t size;
  size_t at;     /* where the current part begins */
  size_t inside; /* bytes of it that are done, of its segments as they are cut into words */
  struct added_match next;
  bool knows_next;
  bool has_part;
  const char *form; /* the part's normal form: the text's, or `own_form` */
  size_t form_size, form_at;
  struct bytes own_form;
  struct added_match form_next;
  bool knows_form_next;
  size_t skipped; /* bytes of the part that a run before this one did */
  size_t before;  /* bytes of segments and tokens before the current segment */
  bool has_segment;
  size_t segment_size;
  struct bytes own_segment; /* the segment with what is put before it and for blanks, where that changes it */
  struct bytes word;        /* the current word, where something is put before it */
  struct splitting splitting;
  struct marking marking;
};

/* Begins with a text at its start. False with a problem at a byte that is not UTF-8. */
bool encoding_begin(struct encoding *encoding, struct encoder *encoder, const char *path, const char *text, size_t size,
                    struct problem *problem);

/* Learns how many bytes of a text each token stands for, for encoding_mark. False without memory. */
bool tokenizer_measure(struct tokenizer *tokenizer);

/* Marks the tokens of `count` ranges of the text, which the caller keeps; after encoding_begin, by a tokenizer that was
 * measured. False without memory. */
bool encoding_mark(struct encoding *encoding, const struct text_range *ranges, size_t count);

/* The marks of the tokens that encoding_next has given, until its next call: the bits (mark_of_range) of the ranges
 * that a part of the token's text is in, or 0. NULL: without ranges. */
const uint8_t *encoding_marks(const struct encoding *encoding);

/* Goes to where another encoding of the same text was. */
void encoding_seek(struct encoding *encoding, size_t at, size_t inside);

/* The next tokens, at most a word's or an added one: an array that stays until the next call, *count of them; 0 at the
 * text's end. False with a problem. */
bool encoding_next(struct encoding *encoding, const uint32_t **tokens, size_t *count, struct problem *problem);

/* Whether `at` and `inside` are where it is: not so between the words of one piece of several splits. */
bool encoding_may_stop(const struct encoding *encoding);

void encoding_end(struct encoding *encoding);

#endif
