/* Normalization: what a tokenizer changes in a text before anything else, as the normalizers of the library tokenizers
 * do it, one after another. */
#ifndef ACCEL_TOKENIZER_NORMALIZE_H
#define ACCEL_TOKENIZER_NORMALIZE_H

#include "gen/tokenizer/bytes.h"
#include "gen/tokenizer/charsmap.h"

enum normalizer_kind {
  NORMALIZE_FORM,          /* to a normal form of Unicode (UAX #15) */
  NORMALIZE_LOWERCASE,     /* each character, whatever its neighbours */
  NORMALIZE_STRIP_ACCENTS, /* marks are removed */
  NORMALIZE_CLEAN,         /* BERT's: control characters are removed, white space becomes blanks */
  NORMALIZE_CHINESE,       /* BERT's: blanks around each ideograph */
  NORMALIZE_STRIP,         /* white space at the ends is removed */
  NORMALIZE_REPLACE,       /* matches of an expression are replaced */
  NORMALIZE_PREPEND,       /* a text is put before one that is not empty */
  NORMALIZE_CHARSMAP,      /* a charsmap's replacements */
};

struct normalizer {
  enum normalizer_kind kind;
  int form;         /* FORM: utf8proc's options */
  bool marks_all;   /* STRIP_ACCENTS: spacing and enclosing marks too, not only those without a width */
  bool left, right; /* STRIP */
  void *code;       /* REPLACE: a pcre2_code, of this */
  const char *text; /* REPLACE: what replaces; PREPEND: what is put before. The caller's */
  struct charsmap charsmap;
};

enum { NORMALIZERS_MOST = 16 };

struct normalizers {
  struct normalizer steps[NORMALIZERS_MOST];
  int count;
};

/* Adds a step, of which it becomes the owner. False: there are too many. */
bool normalizers_add(struct normalizers *normalizers, struct normalizer step);

void normalizers_free(struct normalizers *normalizers);

/* The form of a text, valid UTF-8, in `form`, which was empty; the caller frees it. False without memory. */
bool normalize(const struct normalizers *normalizers, const char *text, size_t size, struct bytes *form);

/* Whether a character is white space (Unicode's White_Space). */
bool is_white_space(int32_t character);

#endif
