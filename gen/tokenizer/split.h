/* How a text is cut into words before a model makes tokens of them: regular expressions, one within the pieces of the
 * other. */
#ifndef ACCEL_TOKENIZER_SPLIT_H
#define ACCEL_TOKENIZER_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

enum { SPLIT_MOST = 8 };

/* What becomes of a match and of what is between two (SplitDelimiterBehavior of the library tokenizers). */
enum split_behavior {
  SPLIT_ISOLATED,             /* each is a piece */
  SPLIT_REMOVED,              /* a match is none */
  SPLIT_CONTIGUOUS,           /* matches without anything between are one piece */
  SPLIT_MERGED_WITH_PREVIOUS, /* a match belongs to what is before it, if that is no match */
  SPLIT_MERGED_WITH_NEXT,     /* … to what is after it */
};

/* The expressions, compiled. */
struct splitter {
  struct split {
    void *code; /* pcre2_code */
    enum split_behavior behavior;
    bool inverted; /* what is between two matches counts as the match */
  } splits[SPLIT_MOST];
  int count;
};

/* An expression as PCRE2 compiles it, with \s, \S, \w and \W as the library has them; a pcre2_code. NULL with the
 * reason in `error`. */
void *split_compile(const char *expression, char *error, size_t size);

/* Adds an expression, within the pieces of those before. False with the reason in `error`. */
bool splitter_add(struct splitter *splitter, const char *expression, enum split_behavior behavior, bool inverted,
                  char *error, size_t size);

void splitter_free(struct splitter *splitter);

/* A text, valid UTF-8, and how far each expression is in its piece of it. */
struct splitting {
  const struct splitter *splitter;
  void *match; /* pcre2_match_data, the caller's */
  const char *text;
  struct {
    size_t from, to, at; /* at: where the next piece begins, and `to` where there is none */
  } levels[SPLIT_MOST + 1];
  int level;   /* the innermost one that is in a piece */
  size_t done; /* the end of the newest word after which splitting can resume */
};

/* Begins with a text of `size` bytes, of which `done` were cut before; `match` is for this text alone until its end. */
void splitting_begin(struct splitting *splitting, const struct splitter *splitter, void *match, const char *text,
                     size_t size, size_t done);

/* Whether no split below the first is inside of a piece, so that splitting can resume here. */
bool splitting_may_stop(const struct splitting *splitting);

/* The next word, `from` to `to` in the text; false at its end. */
bool splitting_next(struct splitting *splitting, size_t *from, size_t *to);

#endif
