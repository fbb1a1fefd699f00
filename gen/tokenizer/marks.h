/* Marks: which tokens of a text are of given ranges of it. A token is marked when a part of its text is in a range, as
 * the library's char_to_token finds the first and the last token of one. */
#ifndef ACCEL_TOKENIZER_MARKS_H
#define ACCEL_TOKENIZER_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct encoder;
struct normalizers;
struct prefix;

/* Bytes `from` to `to`, the latter not among them. */
struct text_range {
  size_t from, to;
};

/* The bit of a range in a mark: bit i of range i, bit 7 of the eighth and all after it. */
static inline uint8_t mark_of_range(size_t range) {
  return (uint8_t)(1u << (range < 7 ? range : 7));
}

/* A range in a part of the text, and its bit. */
struct marked_range {
  size_t from, to;
  uint8_t mark;
};

/* Ranges of a text on their way to its tokens. Zero: there are none, and no token is marked. */
struct marking {
  const struct text_range *ranges; /* of the text; the caller's */
  size_t count;
  struct marked_range *part, *segment; /* where they are in the normal form of the current part, and in its segment */
  size_t n_part, n_segment;
  uint8_t *marks; /* of the current tokens */
  size_t capacity;
};

/* False without memory. */
bool marking_begin(struct marking *marking, const struct text_range *ranges, size_t count);

/* A part of the text begins, from `from` to `to`; its normal form has `size` bytes. False without memory. */
bool marking_part(struct marking *marking, const struct normalizers *normalizers, const char *text, size_t from,
                  size_t to, size_t size);

/* A segment of the form begins, from `from` to `to`, edited as `prefix` says where that is not NULL, to `size` bytes.
 */
void marking_segment(struct marking *marking, const struct prefix *prefix, const char *form, size_t from, size_t to,
                     size_t size);

/* Marks the encoder's `count` tokens, of a word of the segment from `from` to `to`, with `before` bytes put before it.
 * Where the tokens' texts do not add up to the word, as with two unknown tokens, all are of the whole word. False
 * without memory. */
bool marking_word(struct marking *marking, const struct encoder *encoder, size_t from, size_t to, size_t before,
                  size_t count);

/* Marks an added token, found in the text from `from` to `to`, or, `in_form`, in the normal form. */
void marking_added(struct marking *marking, bool in_form, size_t from, size_t to);

void marking_end(struct marking *marking);

#endif
