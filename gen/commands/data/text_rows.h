/* Rows of texts as a model takes them: one or two texts, with a tokenizer's special tokens around them, shortened and
 * padded to one length, as transformers' tokenizer(text, pair, truncation=True, padding="max_length") makes them. */
#ifndef ACCEL_COMMANDS_DATA_TEXT_ROWS_H
#define ACCEL_COMMANDS_DATA_TEXT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "gen/tokenizer/bytes.h"
#include "gen/tokenizer/marks.h"
#include "gen/tokenizer/special.h"
#include "runtime/base/problem.h"
#include "runtime/files/mapping.h"

struct json_t;
struct tokenizer;

/* The tokens of a text, and which of them the row has: `kept` from `first` on, at `at` of what is not padding. */
struct row_text {
  struct bytes tokens, marks; /* uint32 each; uint8, of the ranges of the text (mark_of_range) */
  size_t count, first, kept, at;
};

struct text_rows {
  const char *path; /* of the tokenizer.json */
  struct mapping json;
  struct tokenizer *tokenizer;
  struct special special;
  struct json_t *config; /* of the tokenizer_config.json, or NULL */
  int64_t length;        /* tokens of a row */
  int n_texts;           /* of a row, 1 or 2 */
  uint32_t pad;
  bool pads_left, cuts_left;  /* padding_side and truncation_side of the tokenizer_config.json */
  struct row_text texts[2];   /* of the row that is made */
  struct bytes ids, segments; /* of that row, without padding: uint32, uint8 */
  int64_t shortened;          /* rows whose texts did not fit */
};

/* Reads a tokenizer.json and, for the padding token and the sides, the tokenizer_config.json next to it. `pad`: the
 * text of the padding token, or NULL. False with a problem. Closed also after false. */
bool text_rows_open(struct text_rows *rows, const char *tokenizer, int64_t length, int n_texts, const char *pad,
                    struct problem *problem);

/* Begins a row: its texts have no tokens yet. */
void text_rows_begin(struct text_rows *rows);

/* Appends tokens and their marks to text `which` of the row, 0 or 1. */
void text_rows_take(struct text_rows *rows, int which, const uint32_t *tokens, const uint8_t *marks, size_t count);

/* The mark of token i of text `which`. */
uint8_t text_rows_mark(const struct text_rows *rows, int which, size_t i);

/* Makes the row of its texts. False with a problem. */
bool text_rows_make(struct text_rows *rows, struct problem *problem);

/* Rows of one text each and another one whole: windows of `width` tokens, of which each begins `step` after the one
 * before, as return_overflowing_tokens of transformers makes them. */
struct row_windows {
  int text; /* 0 or 1: the one that is cut */
  size_t width, step, count;
};

/* Divides a text of `count` tokens into windows, of which neighbours share `stride` tokens; the other text has `other`.
 * False with a problem: the other text leaves no room for more than that. */
bool text_rows_windows(const struct text_rows *rows, size_t other, size_t count, size_t stride,
                       struct row_windows *windows, struct problem *problem);

/* Makes the row of window i. Where the tokenizer cuts texts on their left, window 0 is the text's end. */
bool text_rows_make_window(struct text_rows *rows, const struct row_windows *windows, size_t i,
                           struct problem *problem);

/* The number of a token by its text, which is `key` of the tokenizer_config.json ("cls_token"). False: it has none. */
bool text_rows_token(const struct text_rows *rows, const char *key, uint32_t *token);

/* Where the row begins, after padding on its left. */
size_t text_rows_first(const struct text_rows *rows);

/* Where the row, padding among it, first has the token; 0 where it does not. */
int32_t text_rows_find(const struct text_rows *rows, uint32_t token);

void text_rows_close(struct text_rows *rows);

#endif
