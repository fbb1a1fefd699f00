/* How a text is cut into words before its bytes are joined: regular expressions, one within the pieces of the other. */
#ifndef ACCEL_TOKENIZER_SPLIT_H
#define ACCEL_TOKENIZER_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

enum { SPLIT_MOST = 8 };

/* The expressions, compiled. */
struct splitter {
  void *codes[SPLIT_MOST]; /* pcre2_code */
  void *match;             /* pcre2_match_data */
  int count;
};

/* Adds an expression, within the pieces of those before. False with the offset in it and the reason, in `error`. */
bool splitter_add(struct splitter *splitter, const char *expression, char *error, size_t size);

void splitter_free(struct splitter *splitter);

/* A text, valid UTF-8, and how far each expression is in its piece of it. */
struct splitting {
  const char *text;
  struct {
    size_t from, to, at;
  } levels[SPLIT_MOST];
  int level;   /* the innermost one that is in a piece */
  size_t at;   /* the end of the newest word */
  size_t done; /* of the newest one after which splitting can resume */
};

/* Begins with a text of `size` bytes, of which `done` were cut before. */
void splitting_begin(struct splitting *splitting, const char *text, size_t size, size_t done);

/* The next word, `from` to `to` in the text; false at its end. A match is a word, and so is what is between two. */
bool splitting_next(struct splitting *splitting, const struct splitter *splitter, size_t *from, size_t *to);

#endif
